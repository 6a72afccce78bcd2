"""Baselines as contenders."""

from __future__ import annotations

from evaluator.device_session import DeviceSession
from evaluator.oracle.oracle import Oracle
from evaluator.timing.contender import Contender
from evaluator.types import Problem, Workload


def baseline_contender(
    session: DeviceSession, problem: Problem, workload: Workload, mode: str, oracle: Oracle
) -> Contender:
    """Return a Baseline on a Workload, with the oracle's parameters, ready to be timed."""
    return Contender(mode, session.comparator(problem, workload, mode, oracle), suspect=False, buffers=oracle.buffers)
