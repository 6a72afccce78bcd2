"""Judge a kernel that has passed with the other numbers of CPU threads that were asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluator.devices.cpu import CpuBackend
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, Evaluation, Problem, Verdict


def with_other_threads(judge: Judge, problem: Problem, candidate: Candidate, found: Evaluation) -> Evaluation:
    """Return a passed Evaluation with `evidence["other_threads"]`: verdict and speedup for each other number.

    They change neither the verdict nor the speedups, which are of the number that was asked for first.
    """
    if not isinstance(judge.backend, CpuBackend) or found.verdict is not Verdict.PASSED:
        return found
    told = [_told(judge, judge.backend.with_threads(n), problem, candidate) for n in judge.backend.other_threads]
    return replace(found, evidence={**found.evidence, "other_threads": told}) if told else found


def _told(judge: Judge, backend: CpuBackend, problem: Problem, candidate: Candidate) -> dict[str, Any]:
    other = Judge(backend, protocol=judge.protocol)
    try:
        found = other.judge(problem, candidate)
    finally:
        other.close()
    told: dict[str, Any] = {"threads": backend.threads, "verdict": found.verdict.value, "reason": found.reason}
    ratio = found.speedup("fastest")
    if ratio is not None:
        told |= {"speedup": ratio.value, "low": ratio.interval.low, "high": ratio.interval.high}
    return told
