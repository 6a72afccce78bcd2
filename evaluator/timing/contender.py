"""What is timed: a child with a name, and the times that its rounds gave."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.devices.base import Round
from evaluator.errors import EvaluatorError
from evaluator.subject import Subject
from evaluator.timing import stats
from evaluator.types import BaselineTime, Clock, Interval

Ratios = Callable[[str, str], Sequence[float]]  # logarithms of the time of one over that of another, by their names
MOST_OVERHEAD = 0.1  # of a round's wall time that is taken off


@dataclass(slots=True)
class Contender:
    """One child that is timed. A `suspect` runs what somebody handed in (a Candidate, a Champion): every one of its
    outputs is compared. Of one that is `sampled`, a Candidate's second process, one call a round is. A `plain` one
    runs a file that cannot reach the harness (`screening.restricted`). `buffers` are the reference's under this child's
    names: what a round of a module with a memory begins with. What its calls took that came one at a time is told in
    `singly` (`integrity.single_calls`), and of draws that came once in `unseen`. `shortest` is the fewest replays that
    a round of its own had, if more than one."""

    name: str
    subject: Subject
    suspect: bool
    buffers: Mapping[str, torch.Tensor]
    sampled: bool = False
    plain: bool = False
    clock: Clock = Clock.CALLS
    samples: dict[int, list[float]] = field(default_factory=dict)  # executions a round -> microseconds a call
    singly: Mapping[str, Any] = field(default_factory=dict)
    unseen: Mapping[str, Any] = field(default_factory=dict)
    shortest: float = math.inf

    def shown(self, replays: int) -> None:
        """It has a round of so many replays, and may learn from that how many a round has."""
        if replays > 1:
            self.shortest = min(self.shortest, replays)

    def slow_by(self, factor: float) -> None:
        """Take it for so many times slower than it seemed."""
        self.samples = {n: [factor * us for us in samples] for n, samples in self.samples.items()}

    def raise_to(self, least_us: Mapping[int, float]) -> None:
        """Let no sample be less than what is given for rounds of its size."""
        self.samples = {n: [max(us, least_us[n]) for us in samples] for n, samples in self.samples.items()}

    @property
    def compared_in_full(self) -> bool:
        return self.suspect and not self.sampled

    def all_samples(self) -> list[float]:
        return [us for samples in self.samples.values() for us in samples]

    def official_us(self) -> float:
        """The largest over round sizes of the median."""
        return max(statistics.median(samples) for samples in self.samples.values())

    def interval_us(self) -> Interval:
        """Of the mean of logarithms of all samples, moved so that it holds the official time."""
        logs = [math.log(us) for us in self.all_samples()]
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
    """Of those that nobody handed in; None where there are none."""
    return min((c for c in contenders if not c.suspect), key=Contender.official_us, default=None)


def call_us(done: Round, overhead_us: Mapping[int, float]) -> float:
    """What a call of a round took, less the overhead of rounds of its size. A child may make its own harness faster,
    and noise may make the null child's slower: so no more than a tenth of anybody's time is taken off."""
    executions = done.plan.executions
    return (done.wall_us - min(overhead_us[executions], MOST_OVERHEAD * done.wall_us)) / executions


class ComparatorFailed(EvaluatorError):
    """The Baseline or Champion `name` failed while timed: our set-up or the reference, never the Candidate."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
