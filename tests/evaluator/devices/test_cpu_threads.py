"""The number of CPU threads that everything is judged with."""

from __future__ import annotations

import os

import pytest

from evaluator.devices.cpu import CpuBackend
from evaluator.devices.cpu_threads import THREADS_VARIABLE, asked_threads, reserve_cores
from evaluator.errors import CageError
from evaluator.problem import read_problem
from evaluator.report import report
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, Language, Verdict
from tests.evaluator.rooms import SERVED

PROBLEM = """import torch

WORKLOADS = [{"rows": 64}]


class Model(torch.nn.Module):
    def forward(self, x):
        assert torch.get_num_threads() == 2
        return torch.tanh(x) * 2


def get_inputs(rows=64):
    return [torch.randn(rows, 512)]
"""
# It takes the threads of OpenMP that torch's count allows.
CANDIDATE = '''import ctypes
import torch
from warpwright_native import load_cpp

lib = load_cpp(r"""
#include <cmath>
#include <omp.h>
extern "C" int run(const float* x, float* out, long n, int threads) {
  int seen = 0;
#pragma omp parallel for num_threads(threads) reduction(max : seen)
  for (long i = 0; i < n; i++) { out[i] = std::tanh(x[i]) * 2; seen = omp_get_num_threads(); }
  return seen;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        pointers = [ctypes.c_void_p(one.data_ptr()) for one in (x, out)]
        assert lib.run(*pointers, ctypes.c_long(x.numel()), torch.get_num_threads()) == 2
        return out
'''


def test_cores_are_reserved_from_the_end() -> None:
    assert reserve_cores({0, 1, 2, 3}) == ({3}, {0, 1, 2})
    assert reserve_cores({0, 1, 2, 3}, 2) == ({2, 3}, {0, 1})
    assert reserve_cores({4, 5}, 2) == ({4, 5}, {4, 5})
    assert reserve_cores({7}) == ({7}, {7})


@pytest.mark.parametrize(("word", "threads"), [("", 1), ("1", 1), ("3", 3), ("all", 4)])
def test_the_setting_is_a_number_or_all(word: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, word)
    assert asked_threads(4) == threads


@pytest.mark.parametrize("word", ["0", "5", "-1", "two", "1.5"])
def test_another_setting_is_refused_with_what_is_allowed(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, word)
    with pytest.raises(CageError, match=f"a number from 1 to 4 .* or all, not '{word}'"):
        asked_threads(4)


@pytest.mark.compiles
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two threads need two cores")
@pytest.mark.timeout(300)
def test_all_are_judged_with_the_number_that_was_asked_for() -> None:
    judge = Judge(CpuBackend(threads=2), protocol=SERVED)
    try:
        candidate = Candidate(source=CANDIDATE, language=Language.CPP)
        found = judge.judge(read_problem(PROBLEM, "two threads"), candidate)
    finally:
        judge.close()
    assert found.verdict is Verdict.PASSED, found
    assert found.environment is not None
    assert found.environment.threads == 2
    assert "  with 2 CPU threads" in report(found)
