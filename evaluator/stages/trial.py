"""One request to judge a Candidate, as one value."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from evaluator.errors import Rejection
from evaluator.languages import adapter
from evaluator.languages.base import LanguageAdapter
from evaluator.stages.stage_clock import StageClock, first_call_limit_s
from evaluator.types import BaselineReport, Candidate, Clock, DeviceKind, Problem, Stage, Verdict, Workload


def secret_generator() -> torch.Generator:
    """Return a generator with a seed that no child can guess."""
    return torch.Generator().manual_seed(secrets.randbits(63))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A Candidate on trial for a Problem on one kind of device.

    `baseline` and `champion` choose its comparators. A `quick` trial ends early for a Candidate that is clearly
    slower than the fastest Baseline, or than `best`: the best speedups over it so far, by Workload.
    `generator` is the source of all randomness, and `clock` measures the stages.
    """

    problem: Problem
    candidate: Candidate
    kind: DeviceKind
    baseline: BaselineReport | None = None
    champion: Candidate | None = None
    quick: bool = False
    best: Mapping[str, float] = field(default_factory=dict)
    generator: torch.Generator = field(default_factory=secret_generator)
    clock: StageClock = field(default_factory=StageClock)

    @property
    def workloads(self) -> Sequence[Workload]:
        return self.problem.workloads_for(self.kind)

    @property
    def shown(self) -> Sequence[Workload]:
        return [workload for workload in self.workloads if not workload.held_out]

    @property
    def held_out(self) -> Sequence[Workload]:
        return [workload for workload in self.workloads if workload.held_out]

    def best_speedup(self, workload: Workload) -> float:
        """Return the speedup over the fastest Baseline that is to be beaten on a Workload: at least 1."""
        return max(1.0, self.best.get(workload.name, 1.0))

    def known_us(self, workload: Workload, clock: Clock) -> Mapping[str, float]:
        """Return the times of the Baselines in the session that measured them, by mode, as far as they were taken with
        the same clock; nothing on a CPU, for which compilers choose without one."""
        if self.baseline is None or self.kind is DeviceKind.CPU:
            return {}
        times = (one for one in self.baseline.times if (one.workload, one.clock) == (workload.name, clock))
        return {one.mode: one.median_us for one in times}

    @property
    def adapter(self) -> LanguageAdapter:
        return adapter(self.candidate.language)

    def check_language(self) -> None:
        """Raise Rejection if the Candidate's language cannot be judged here, or not for the Problem's dtypes."""
        dtypes = tuple(v for one in self.workloads for v in one.sizes.values() if isinstance(v, str))
        # Texts among sizes are dtypes, by convention.
        why = self.adapter.missing(self.kind) or self.adapter.refuses(self.kind, dtypes)
        if why is not None:
            raise Rejection(Verdict.INVALID_SUBMISSION, Stage.SCREEN, why, check="device")

    @property
    def is_timed(self) -> bool:
        return self.adapter.timed_on(self.kind)

    @property
    def first_call_s(self) -> float:
        return first_call_limit_s(self.candidate)
