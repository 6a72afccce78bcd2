"""Small drawings as numbers for inline SVG: intervals on a common scale, the best so far as a staircase."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluator.types import Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """Positions between 0 and 100 on a logarithmic scale: the interval's ends, its middle, and where 1× is."""

    low: float
    high: float
    middle: float
    one: float


def interval_bar(ratio: Ratio, top: float) -> IntervalBar:
    """Where a Ratio lies on the scale from 0.8× (or lower) to `top`."""
    bottom = min(0.8, ratio.interval.low)
    upper = max(top, ratio.interval.high, 1.25)

    def position(value: float) -> float:
        share = math.log(max(value, bottom) / bottom) / math.log(upper / bottom)
        return round(100 * min(1.0, max(0.0, share)), 2)

    low, high = position(ratio.interval.low), position(ratio.interval.high)
    return IntervalBar(low=low, high=max(high, low + 0.8), middle=position(ratio.value), one=position(1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """The best so far against the number of Candidates, in a box of `width` by `height`; y grows downwards."""

    path: str
    points: tuple[tuple[float, float], ...]
    one: float
    top: float
    last: int
    width: int
    height: int


def staircase(results: Sequence[tuple[int, float]], *, width: int = 640, height: int = 160) -> Staircase | None:
    """The drawing for (Candidate number, speedup) pairs in order; None without any."""
    if not results:
        return None
    last = max(number for number, _ in results)
    best = max(value for _, value in results)
    top = max(1.2, best * 1.1)

    def x(number: float) -> float:
        return round(width * number / max(last, 1), 2)

    def y(value: float) -> float:
        return round(height - height * min(value, top) / top, 2)

    points = tuple((x(number), y(value)) for number, value in results)
    return Staircase(
        path=" ".join([*_steps(results, x, y), f"H{width}"]),
        points=points,
        one=y(1.0),
        top=top,
        last=last,
        width=width,
        height=height,
    )


def _steps(results: Sequence[tuple[int, float]], x: Callable[[float], float], y: Callable[[float], float]) -> list[str]:
    """Along at the old level to where a better one was found, then up to it."""
    level = 0.0
    commands: list[str] = []
    for number, value in results:
        if value <= level:
            continue
        commands += [f"H{x(number)}", f"V{y(value)}"] if commands else [f"M{x(number)} {y(value)}"]
        level = value
    return commands
