"""Contenders: children that are timed, each with a name and the samples of its rounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.devices.base import RoundPlan
from evaluator.subject import Subject
from evaluator.timing import stats
from evaluator.types import Adjustment, BaselineTime, Clock, Interval

Ratios = Callable[[str, str], Sequence[float]]  # (over, under) names -> log(time of over / time of under) for each pair


@dataclass(slots=True)
class Contender:
    """One child that is timed.

    A `suspect` runs a submitted file (a Candidate, a Champion), and all of its outputs are compared. A `sampled` one is
    a Candidate's second process, and one call a round is compared. A `plain` one runs a file that cannot reach the
    harness (`screening.restricted`). `buffers` are the reference's under this child's names; rounds of a module with
    memory start from them. `parameters` are the same, of a suspect, as they were loaded. Integrity checks append to
    `adjustments`, and leave evidence in `own_loop`, `single_calls` and `fresh_draws`; `unchecked` has the checks that
    could not look, with the reasons. `fewest_replays` is of its rounds with more than one replay.
    """

    name: str
    subject: Subject
    suspect: bool
    buffers: Mapping[str, torch.Tensor]
    parameters: Mapping[str, torch.Tensor] = field(default_factory=dict)
    sampled: bool = False
    plain: bool = False
    clock: Clock = Clock.CALLS
    prepared: RoundPlan | None = None  # for rounds of this plan
    samples: dict[int, list[float]] = field(default_factory=dict)  # executions a round -> raw microseconds a call
    adjustments: tuple[Adjustment, ...] = ()
    single_calls: Mapping[str, Any] = field(default_factory=dict)
    fresh_draws: Mapping[str, Any] = field(default_factory=dict)
    own_loop: Mapping[str, Any] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    fewest_replays: float = math.inf
    page_faults: list[int] = field(default_factory=list)  # of each counted round, where the device tells

    def note_replays(self, replays: int) -> None:
        """Note a round's replays: the child may learn from it how many a round has."""
        if replays > 1:
            self.fewest_replays = min(self.fewest_replays, replays)

    def forget_samples(self) -> None:
        self.samples.clear()
        self.page_faults.clear()
        self.adjustments = ()
        self.unchecked.clear()

    def as_sampled(self, name: str) -> Contender:
        """Give it another name, and compare one call a round from now on. It remains prepared."""
        self.name, self.sampled = name, True
        return self

    def note_unchecked(self, check: str, why: str) -> None:
        """Note that a check could not look, and why. Without a reason, forget that: it has looked by now."""
        if why:
            self.unchecked[check] = why
        else:
            self.unchecked.pop(check, None)

    def slow_by(self, check: str, factor: float) -> None:
        """Count its times as `factor` times longer. The samples stay raw."""
        if factor > 1:
            self.adjustments += (Adjustment(check=check, factor=factor),)

    def raise_to(self, check: str, least_us: Mapping[int, float]) -> None:
        """Count its times as no less than a floor for each round size. The samples stay raw."""
        for executions, times in self.adjusted_samples().items():
            if min(times) < least_us[executions]:
                floor = Adjustment(check=check, floor_us=least_us[executions], round_calls=executions)
                self.adjustments += (floor,)

    def adjusted_samples(self) -> dict[int, list[float]]:
        """Return the samples by round size, with the adjustments: official figures are computed from these."""
        return {n: [self._adjusted_us(n, us) for us in samples] for n, samples in self.samples.items()}

    def _adjusted_us(self, executions: int, us: float) -> float:
        for one in self.adjustments:
            if one.round_calls in (None, executions):
                us = max(one.factor * us, one.floor_us)
        return us

    @property
    def compared_in_full(self) -> bool:
        return self.suspect and not self.sampled

    def all_samples(self) -> list[float]:
        """Return the raw samples of all round sizes."""
        return [us for samples in self.samples.values() for us in samples]

    def official_us(self) -> float:
        """Return the largest median over the round sizes."""
        return max(statistics.median(samples) for samples in self.adjusted_samples().values())

    def interval_us(self) -> Interval:
        """Return the interval of the mean logarithm of all samples, widened to hold the official time."""
        logs = [math.log(us) for samples in self.adjusted_samples().values() for us in samples]
        official = self.official_us()
        if len(logs) < 2:
            return Interval(low=official, high=official)
        _, interval = stats.ratio_interval(logs)
        return Interval(low=min(interval.low, official), high=max(interval.high, official))

    def baseline_time(self, workload: str) -> BaselineTime:
        return BaselineTime(
            mode=self.name,
            workload=workload,
            clock=self.clock,
            median_us=self.official_us(),
            interval_us=self.interval_us(),
            samples_us=tuple(round(us, 4) for us in self.all_samples()),
        )


def fastest_comparator(contenders: Sequence[Contender]) -> Contender | None:
    """Return the fastest contender that is no suspect; None where there is none."""
    return min((c for c in contenders if not c.suspect), key=Contender.official_us, default=None)
