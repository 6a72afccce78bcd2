"""The number of CPU threads that everything is judged with."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.devices.cpu import CpuBackend
from evaluator.devices.cpu_threads import THREADS_VARIABLE, asked_threads, reserve_cores
from evaluator.errors import CageError
from evaluator.problem import read_problem
from evaluator.report import report
from evaluator.stages import other_threads
from evaluator.stages.judge import Judge
from evaluator.stages.other_threads import with_other_threads
from evaluator.types import (
    Candidate,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Interval,
    Language,
    Problem,
    Ratio,
    Stage,
    Verdict,
)
from tests.evaluator.rooms import SERVED

SPEEDUPS = (Ratio(against="fastest", workload=None, value=2.0, interval=Interval(low=1.9, high=2.1)),)
EVALUATION = Evaluation(
    verdict=Verdict.PASSED,
    stage=Stage.CONFIRM,
    reason="right",
    evidence={"seen": True},
    timed=False,
    device=Device(kind=DeviceKind.CPU, name="x", uuid="y"),
    candidate_hash="c",
    problem_hash="p",
    environment=Environment(python="3", torch="2", threads=1),
)
CORES = os.sched_getaffinity(0)  # before the suite leaves one to the judge
PROBLEM = """import torch

WORKLOADS = [{"rows": 64}]


class Model(torch.nn.Module):
    def forward(self, x):
        assert torch.get_num_threads() in (1, 2)
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
        assert lib.run(*pointers, ctypes.c_long(x.numel()), torch.get_num_threads()) == torch.get_num_threads()
        return out
'''


def test_cores_are_reserved_from_the_end() -> None:
    assert reserve_cores({0, 1, 2, 3}) == ({3}, {0, 1, 2})
    assert reserve_cores({0, 1, 2, 3}, 2) == ({2, 3}, {0, 1})
    assert reserve_cores({4, 5}, 2) == ({4, 5}, {4, 5})
    assert reserve_cores({7}) == ({7}, {7})


@pytest.mark.parametrize(("word", "threads"), [("", (1,)), ("3", (3,)), ("all", (4,)), ("1,all,4", (1, 4))])
def test_the_setting_has_numbers_or_all(word: str, threads: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, word)
    assert asked_threads(4) == threads


@pytest.mark.parametrize("word", ["0", "5", "1,5", "two", "1.5", "1,"])
def test_another_setting_is_refused_with_what_is_allowed(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, word)
    with pytest.raises(CageError, match=r"a number from 1 to 4 .* or all, or several with commas, not '"):
        asked_threads(4)


class OtherJudge:
    """It finds a kernel twice as fast with other threads, or wrong."""

    verdict = Verdict.PASSED
    closed = 0

    def __init__(self, backend: CpuBackend, protocol: object) -> None:
        del protocol
        self.threads = backend.threads

    def judge(self, problem: Problem, candidate: Candidate) -> Evaluation:
        del problem, candidate
        return replace(EVALUATION, verdict=self.verdict, speedups=SPEEDUPS if self.verdict is Verdict.PASSED else ())

    def close(self) -> None:
        OtherJudge.closed += 1


def test_kernels_that_pass_are_judged_with_the_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_threads, "Judge", OtherJudge)
    backend = CpuBackend(threads=1)
    backend.other_threads = (3, 4)
    session = SimpleNamespace(comparators=SimpleNamespace(paused=nullcontext))
    judge: Any = SimpleNamespace(backend=backend, protocol=None, session=session)
    problem, candidate = read_problem(PROBLEM, "threads"), Candidate(source=CANDIDATE, language=Language.CPP)

    found = with_other_threads(judge, problem, candidate, EVALUATION)
    assert [(one["threads"], one["verdict"]) for one in found.evidence["other_threads"]] == [
        (3, "PASSED"),
        (4, "PASSED"),
    ]
    assert "  with 3 instead: PASSED, 2.000x (1.900 to 2.100) against fastest" in report(found)
    assert (found.verdict, found.speedups) == (EVALUATION.verdict, EVALUATION.speedups)
    monkeypatch.setattr(OtherJudge, "verdict", Verdict.INCORRECT_VALUES)
    found = with_other_threads(judge, problem, candidate, EVALUATION)
    assert found.evidence["other_threads"][0] == {"threads": 3, "verdict": "INCORRECT_VALUES", "reason": "right"}
    assert "  with 3 instead: INCORRECT_VALUES, right" in report(found)
    assert OtherJudge.closed == 4

    wrong = replace(EVALUATION, verdict=Verdict.INCORRECT_VALUES)
    assert with_other_threads(judge, problem, candidate, wrong) is wrong
    backend.other_threads = ()
    assert with_other_threads(judge, problem, candidate, EVALUATION) is EVALUATION


@pytest.mark.soak
@pytest.mark.compiles
@pytest.mark.skipif(len(CORES) < 2, reason="two threads need two cores")
@pytest.mark.timeout(300)
def test_all_are_judged_with_the_numbers_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "2,1")
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    judge = Judge(CpuBackend(), protocol=SERVED)
    problem = read_problem(PROBLEM, "two threads")
    candidate = Candidate(source=CANDIDATE, language=Language.CPP)
    try:
        alone = judge.judge(problem, candidate)
        found = with_other_threads(judge, problem, candidate, alone)
    finally:
        judge.close()
        os.sched_setaffinity(0, own)
    assert found.verdict is Verdict.PASSED, found
    assert found.environment is not None
    assert found.environment.threads == 2
    assert found.speedups == alone.speedups
    [other] = found.evidence["other_threads"]
    assert (other["threads"], other["verdict"]) == (1, "PASSED")
    assert other["low"] <= other["speedup"] <= other["high"]
    assert "  with 2 CPU threads\n  with 1 instead: PASSED, " in report(found)
