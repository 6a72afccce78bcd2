"""A third opinion on the official times of a confirmation: the same calls in a plain loop, as a user writes it.

On a GPU that is a plain replay of a graph, beside the device time of the kernels. The loop verifies nothing, so it
never raises a claim. Where it disagrees with the official times it lowers the claim to the smaller gain.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.devices.base import PlainLoop
from evaluator.timing import stats
from evaluator.types import Adjustment

CHECK = "plain_loop"
_FEWEST = 2  # repetitions, of which an interval can be made
_CONFIDENCE = 0.999
_LEAST_SPREAD = 1e-6  # of logs, which may be all alike
_MOST_SHARE, _MOST_US = 0.1, 0.3  # by which the times may differ, whichever is more


@dataclass(slots=True)
class ThirdOpinion:
    """The plain loops of one Workload, by contender, one for each repetition that had one, and the device time of a
    call's kernels in microseconds, where a profiler told it."""

    loops: dict[str, list[PlainLoop]] = field(default_factory=dict)
    kernels_us: dict[str, float] = field(default_factory=dict)

    def note(self, loops: Mapping[str, PlainLoop]) -> None:
        for name, loop in loops.items():
            self.loops.setdefault(name, []).append(loop)

    def note_kernels(self, loops: Mapping[str, PlainLoop]) -> None:
        """Note the kernels' times of profiled loops."""
        self.kernels_us |= {name: loop.kernels_us for name, loop in loops.items() if loop.kernels_us is not None}

    def is_about(self, name: str) -> bool:
        """Return whether a contender has had a plain loop beside the Candidate's."""
        return {"candidate", name} <= self.loops.keys()

    def bears_out(self, official_us: Mapping[str, float]) -> bool:
        """Return whether enough loops are there, and none of the times disagrees: further ones would change nothing."""
        few = min((len(loops) for loops in self.loops.values()), default=0)
        return few >= _FEWEST and not any(self.disagrees(name, official_us[name]) for name in self.loops)

    def call_us(self, name: str) -> float:
        return statistics.median(loop.call_us for loop in self.loops[name])

    def log_ratios(self, over: str, under: str) -> list[float]:
        """Return log(time of `over` / time of `under`) for each repetition."""
        pairs = zip(self.loops[over], self.loops[under], strict=True)
        return [math.log(one.call_us / other.call_us) for one, other in pairs]

    def disagrees(self, name: str, official_us: float) -> bool:
        plain_us = self.call_us(name)
        return abs(official_us - plain_us) > max(_MOST_SHARE * plain_us, _MOST_US)

    def lowered(self, against: str, logs: Sequence[float], official_us: Mapping[str, float]) -> Sequence[float]:
        """Return the log ratios of the claim against a comparator. `official_us` are the times by contender.

        Where a time disagrees and the plain loops' gain is smaller, `logs` are moved to that gain, with the wider
        spread of both, and wider still where there are fewer plain loops.
        """
        if len(self.loops[against]) < _FEWEST or not any(
            self.disagrees(name, official_us[name]) for name in ("candidate", against)
        ):
            return logs
        plain = self.log_ratios(against, "candidate")
        centre, before = statistics.fmean(plain), statistics.fmean(logs)
        if centre >= before:
            return logs
        wider = max(1.0, statistics.stdev(plain) / max(statistics.stdev(logs), _LEAST_SPREAD))
        wider *= _fewer(len(plain), len(logs))
        return [centre + wider * (log - before) for log in logs]

    def told(self, official_us: Mapping[str, float]) -> dict[str, Any]:
        """Return for each contender both times, and whether they disagree, to show."""
        found: dict[str, Any] = {}
        for name in self.loops:
            kernels_us = self.kernels_us.get(name)
            found[name] = {
                "official_us": round(official_us[name], 3),
                "plain_us": round(self.call_us(name), 3),
                **({} if kernels_us is None else {"kernels_us": round(kernels_us, 3)}),
                "disagrees": self.disagrees(name, official_us[name]),
            }
        return found


def _fewer(few: int, many: int) -> float:
    """Return the factor of the spread by which `many` values bound a mean as loosely as `few` would at 99.9 %."""
    if few >= many:
        return 1.0
    quantiles = [stats.student_quantile(_CONFIDENCE, n - 1) for n in (few, many)]
    return math.sqrt(many / few) * quantiles[0] / quantiles[1]


def adjustment(before: Sequence[float], after: Sequence[float]) -> tuple[Adjustment, ...]:
    """Return the Adjustment of the Candidate's times that tells of a lowered claim; none where nothing was lowered."""
    factor = math.exp(statistics.fmean(before) - statistics.fmean(after))
    return (Adjustment(check=CHECK, factor=factor),) if factor > 1 else ()
