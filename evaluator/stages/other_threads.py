"""Judge a kernel that has passed with the other numbers of CPU threads that were asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluator.devices.cpu import CpuBackend
from evaluator.errors import EvaluatorError
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, Evaluation, Problem, Verdict


def with_other_threads(judge: Judge, problem: Problem, candidate: Candidate, found: Evaluation) -> Evaluation:
    """Return a passed Evaluation with `evidence["other_threads"]`: verdict and speedup for each other number.

    They change neither the verdict nor the speedups, which are of the number that was asked for first.
    """
    if not isinstance(judge.backend, CpuBackend) or found.verdict is not Verdict.PASSED:
        return found
    told = [_told(judge, judge.backend, n, problem, candidate) for n in judge.backend.other_threads]
    return replace(found, evidence={**found.evidence, "other_threads": told}) if told else found


def _told(judge: Judge, backend: CpuBackend, threads: int, problem: Problem, candidate: Candidate) -> dict[str, Any]:
    """Return the result with a number of threads. A fault of ours is told: the first result stands all the same."""
    told: dict[str, Any] = {"threads": threads, "verdict": Verdict.INTERNAL_ERROR.value}
    try:
        with judge.session.comparators.paused():
            found = _judged(Judge(backend.with_threads(threads), protocol=judge.protocol), problem, candidate)
    except EvaluatorError as error:
        return {**told, "reason": str(error)[:500]}
    told |= {"verdict": found.verdict.value, "reason": found.reason}
    ratio = found.speedup("fastest")
    if ratio is not None:
        told |= {"speedup": ratio.value, "low": ratio.interval.low, "high": ratio.interval.high}
    return told


def _judged(other: Judge, problem: Problem, candidate: Candidate) -> Evaluation:
    try:
        return other.judge(problem, candidate)
    finally:
        other.close()
