"""A small Problem and Candidates for it, shared by the judge's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial

import pytest

from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.timing.protocol import SamplingPlan, TimingProtocol
from evaluator.types import BaselineReport, BaselineTime, Candidate, Clock, Device, Environment, Interval, Problem

_USUAL = TimingProtocol()
# A tenth of a second of timing tells a factor of 1.3 from 1. Every call of a round is verified, and that takes longer
# than the round: so few calls are enough here, as usual.
QUICK = replace(_USUAL.judge, least_pairs=2, most_pairs=4, round_us=3000.0, budget_s=0.4)
QUICKLY = TimingProtocol(
    judge=QUICK,
    profile=QUICK,
    baseline=replace(_USUAL.baseline, round_us=QUICK.round_us, budget_s=QUICK.budget_s),
    baseline_so_far=replace(_USUAL.baseline_so_far, round_us=QUICK.round_us, budget_s=QUICK.budget_s),
    confirm=replace(_USUAL.confirm, round_us=QUICK.round_us),  # its number of pairs stays
    sampling=SamplingPlan(span_s=0.5, most_samples=300),
)
# For tests that ask whether a Candidate passes, and not how fast it is or how closely it was watched.
BRIEF = replace(QUICK, most_pairs=2, budget_s=0.1, least_round_us=500.0, rehearse=False, closely=False)
# Its confirmations are like a user's but for their numbers: two repetitions of two pairs, and no look is prolonged.
BRIEFLY = replace(
    QUICKLY,
    judge=BRIEF,
    look=replace(_USUAL.look, round_us=QUICK.round_us, least_round_us=BRIEF.least_round_us),
    confirm=replace(QUICKLY.confirm, least_pairs=2, most_pairs=2, patient=False, least_round_us=BRIEF.least_round_us),
    process_pairs=2,
    hidden_pairs=1,
    integrity=replace(_USUAL.integrity, interpreter_s=0.1),
)
# For a judge that is served. Its confirmations are as long as ever, since they must hold on a busy machine.
SERVED = replace(_USUAL, judge=QUICK, profile=QUICK, baseline=QUICKLY.baseline, baseline_so_far=QUICKLY.baseline_so_far)

PROBLEM = '''"""RMSNorm with a gain."""
import torch

WORKLOADS = [
    {"name": "small", "rows": 48, "hidden": 256},
    {"name": "odd", "rows": 7, "hidden": 129, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs(rows=48, hidden=256):
    return [torch.randn(rows, hidden)]


def get_init_inputs(hidden=256):
    return [hidden]
'''

HEAD = """import ctypes, os, sys, threading, time
import torch


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))


"""

# With `lib` above it.
CALLS_LIB = """

class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        ptr = ctypes.c_void_p
        lib.rmsnorm(ptr(x.data_ptr()), ptr(self.weight.data_ptr()), ptr(y.data_ptr()),
                    ctypes.c_long(x.numel() // n), ctypes.c_long(n))
        return y
"""

CPP = (
    HEAD
    + '''
from warpwright_native import load_cpp

SOURCE = r"""
#include <cmath>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n) {
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    float lanes[16] = {0};
    long i = 0;
    for (; i + 16 <= n; i += 16) for (int j = 0; j < 16; j++) lanes[j] += p[i + j] * p[i + j];
    float sum = 0;
    for (int j = 0; j < 16; j++) sum += lanes[j];
    for (; i < n; i++) sum += p[i] * p[i];
    float scale = 1.0f / std::sqrt(sum / n + 1e-6f);
    for (i = 0; i < n; i++) y[r * n + i] = p[i] * scale * w[i];
  }
}
"""
lib = load_cpp(SOURCE)


'''
    + CALLS_LIB
)

# For tests of compilers, which need no GPU.
DOUBLE_IN_TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""


@cache
def problem() -> Problem:
    return read_problem(PROBLEM, "rmsnorm")


def candidate(body: str, *, head: str = HEAD) -> Candidate:
    source = head + body
    return Candidate(source=source, language=detect(source), proposer="test")


def forward(*lines: str) -> Candidate:
    """A Candidate whose forward has these lines."""
    text = "\n".join(f"        {line}" for line in lines)
    return candidate(f"class ModelNew(Base):\n    def forward(self, x):\n{text}\n")


@contextmanager
def workloads_alone(judge: Judge, protocol: TimingProtocol = QUICKLY) -> Iterator[Judge]:
    """Give a judge a protocol, by default one that watches closely, and let it check Workloads alone: for tests of what
    it does beside checking. The other sizes take longer than short rounds do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "protocol", protocol)
        patch.setattr(judge.check_stage, "check", partial(judge.check_stage.check, varied=False))
        yield judge


def eager_only(judge: Judge, one: Problem) -> BaselineReport:
    """A report that makes eager the comparator, without timing anything first."""
    return eager_report(one, judge.device, judge.environment)


def eager_report(one: Problem, device: Device, environment: Environment | None = None) -> BaselineReport:
    times = tuple(
        BaselineTime(
            mode="eager", workload=w.name, clock=Clock.CALLS, median_us=1.0, interval_us=Interval(low=1, high=1)
        )
        for w in one.workloads
    )
    environment = environment or Environment(python="3", torch="2")
    return BaselineReport(problem_hash=one.hash, device=device, environment=environment, times=times)
