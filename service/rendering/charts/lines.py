"""Small drawings as numbers for inline SVG: intervals on a common scale, the best so far as steps, sparklines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from db.views.rows import Milestone
from evaluator.types import Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """Positions from 0 to 100 on a logarithmic scale: the interval's ends, its middle, and the mark of 1x."""

    low: float
    high: float
    middle: float
    one: float


def interval_bar(ratio: Ratio, top: float) -> IntervalBar:
    """Place a Ratio on the scale from 0.8x (or lower) to `top`."""
    return log_bar(ratio.interval.low, ratio.value, ratio.interval.high, bottom=0.8, top=max(top, 1.25))


def log_bar(low: float, middle: float, high: float, *, bottom: float, top: float, one: float = 1.0) -> IntervalBar:
    """Place an interval on a logarithmic scale; parts beyond the scale are cut off at its ends."""
    floor = max(min(bottom, middle), 1e-9)
    ceiling = max(top, middle, floor * 1.01)

    def position(value: float) -> float:
        share = math.log(max(value, floor) / floor) / math.log(ceiling / floor)
        return round(100 * min(1.0, max(0.0, share)), 2)

    left, right = position(low), position(high)
    return IntervalBar(low=left, high=max(right, left + 0.8), middle=position(middle), one=position(one))


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """The best so far as a path, its interval as an area, in a box of `width` by `height`; y grows downwards."""

    path: str
    area: str
    champions: tuple[tuple[float, float], ...]
    one: float
    width: int
    height: int


def staircase(
    milestones: Sequence[Milestone], axis: str, end: float, *, width: int = 640, height: int = 200
) -> Staircase | None:
    """Draw a Run's judged best over `axis`, from 0 to `end`; None without any."""
    judged = [m for m in milestones if not m.confirmed]
    if not judged:
        return None
    right = max(end, getattr(judged[-1], axis), 1e-9)
    bottom, top = value_range(milestones)

    def x(m: Milestone) -> float:
        return round(width * float(getattr(m, axis)) / float(right), 2)

    # A milestone that moves the drawing by less than a point is skipped, unless it is the last.
    judged = [m for m, after in itertools.pairwise(judged) if x(after) - x(m) >= 1] + judged[-1:]

    def y(value: float) -> float:
        return round(height - height * (min(max(value, bottom), top) - bottom) / (top - bottom), 2)

    return Staircase(
        path=_steps(judged, x, lambda m: y(m.speedup.value)) + f" H{width}",
        area=_area(judged, x, y, width),
        champions=tuple((x(m), y(m.speedup.value)) for m in milestones if m.confirmed),
        one=y(1.0),
        width=width,
        height=height,
    )


def value_range(milestones: Sequence[Milestone]) -> tuple[float, float]:
    """Return bottom and top of a scale that holds every value and 1x; wide intervals may leave it."""
    values = [m.speedup.value for m in milestones] or [1.0]
    return min(0.8, *values) * 0.95, max(1.25, *values) * 1.12


def _steps(found: Sequence[Milestone], x: Callable[[Milestone], float], y: Callable[[Milestone], float]) -> str:
    first, *rest = found
    return " ".join([f"M{x(first)} {y(first)}", *(f"H{x(m)} V{y(m)}" for m in rest)])


def _area(found: Sequence[Milestone], x: Callable[[Milestone], float], y: Callable[[float], float], width: int) -> str:
    """Trace the upper ends forward, the lower ones back."""
    there = _steps(found, x, lambda m: y(m.speedup.interval.high)) + f" H{width}"
    back = [f"V{y(found[-1].speedup.interval.low)}"]
    for before, after in zip(reversed(found[:-1]), reversed(found[1:]), strict=True):
        back.append(f"H{x(after)} V{y(before.speedup.interval.low)}")
    return " ".join([there, *back, f"H{x(found[0])} Z"])


def sparkline(values: Sequence[float], *, width: float = 80.0, height: float = 20.0) -> str:
    """Draw a line through a few values, as an SVG path of that size; "" for fewer than two."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    points = [
        f"{round(2 + (width - 4) * i / (len(values) - 1), 1)} {round(height - 2 - (height - 4) * (v - low) / reach, 1)}"
        for i, v in enumerate(values)
    ]
    return "M" + " L".join(points)
