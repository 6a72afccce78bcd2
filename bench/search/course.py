"""The course of a search: how good its best kernel was after so many proposals and measurements.

Quality is the log of the share of the best known speedup. The goal on a landscape is the quality that another search
has reached after N proposals, a mean over seeds. The measurements after which its own mean quality got there are
compared with those of ours, so a search that found its best at once is not charged for what it did later.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.search.landscape import Meter

MOMENTS = (50, 100)
"""Proposals after which searches are compared."""
WORST = math.log(0.1)
"""The quality of nothing, and the worst that counts."""
ALIKE = 0.005
"""A quality so near, as a log, is reached."""
DRAWS = 400


@dataclass(frozen=True)
class Course:
    """One search on one landscape. `needed`: measurements until within reach of the best known.

    `steps` holds (measurements, quality) wherever the quality rose; `at` the same after each of MOMENTS proposals.
    """

    needed: int
    steps: tuple[tuple[int, float], ...]
    at: Mapping[int, tuple[int, float]]

    def quality(self, measurements: int) -> float:
        """Return the quality after so many measurements."""
        index = bisect_right(self.steps, (measurements, math.inf)) - 1
        return self.steps[index][1] if index >= 0 else WORST


def course_of(meter: Meter, most: int) -> Course:
    """Return the course that a meter saw."""
    steps: list[tuple[int, float]] = []
    at: dict[int, tuple[int, float]] = dict.fromkeys(MOMENTS, (0, WORST))
    for proposals, count, best in meter.trace:
        quality = max(WORST, math.log(best / meter.land.best)) if best > 0 else WORST
        if not steps or quality > steps[-1][1]:
            steps.append((count, quality))
        for moment in MOMENTS:
            if proposals <= moment:
                at[moment] = count, quality
    return Course(meter.reached_at or most, tuple(steps), at)


Courses = Mapping[tuple[str, int], Course]


def written_courses(courses: Courses) -> str:
    """Return courses as JSON."""
    lines = [[land, seed, one.needed, one.steps, list(one.at.items())] for (land, seed), one in courses.items()]
    return json.dumps(lines)


def read_courses(text: str) -> Courses:
    """Return the courses that `written_courses` wrote."""
    return {
        (land, seed): Course(needed, tuple((n, q) for n, q in steps), {moment: (n, q) for moment, (n, q) in at})
        for land, seed, needed, steps, at in json.loads(text)
    }


class _Pair:
    """The courses of ours and of another search on one landscape, by seed, as qualities by measurements."""

    def __init__(self, mine: Sequence[Course], other: Sequence[Course], moment: int, most: int) -> None:
        self._goals = [course.at[moment][1] for course in other]
        self._curves = [[[one.quality(n) for n in range(most + 1)] for one in side] for side in (mine, other)]

    def log_ratio(self, chosen: Sequence[int]) -> float:
        """Return the log of the other's measurements over those of ours until the quality it has at the moment."""
        goal = statistics.fmean(self._goals[i] for i in chosen) - ALIKE
        mine, other = (_need([curves[i] for i in chosen], goal) for curves in self._curves)
        return math.log(other / mine)


def _need(curves: Sequence[Sequence[float]], goal: float) -> int:
    """Return the measurements after which the mean quality, which never falls, is at the goal; the last if never."""
    low, high = 0, len(curves[0]) - 1
    while low + 1 < high:
        middle = (low + high) // 2
        reached = sum([curve[middle] for curve in curves]) >= goal * len(curves)
        low, high = (low, middle) if reached else (middle, high)
    return high


def compare_at(mine: Courses, other: Courses, moment: int, most: int) -> dict[str, object]:
    """Return the ratio of measurements for the quality after `moment` proposals, and both shares of the best known."""
    lands = sorted({land for land, _ in mine})
    seeds = sorted({seed for _, seed in mine})
    pairs = [
        _Pair([mine[land, seed] for seed in seeds], [other[land, seed] for seed in seeds], moment, most)
        for land in lands
    ]
    every = range(len(seeds))
    rng = random.Random(0)
    means = sorted(
        statistics.fmean(pair.log_ratio(rng.choices(every, k=len(seeds))) for pair in rng.choices(pairs, k=len(pairs)))
        for _ in range(DRAWS)
    )
    low, high = math.exp(means[DRAWS // 40]), math.exp(means[-DRAWS // 40 - 1])
    return {
        "ratio": round(math.exp(statistics.fmean(pair.log_ratio(every) for pair in pairs)), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "verdict": "ahead" if low > 1 else "behind" if high < 1 else "no difference",
        "share_of_best": _share(other, moment),
        "ours_share_of_best": _share(mine, moment),
    }


def _share(courses: Courses, moment: int) -> float:
    return round(math.exp(statistics.fmean(course.at[moment][1] for course in courses.values())), 3)
