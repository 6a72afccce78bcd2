"""Baselines that a compiler made slower than those of an earlier session on the device.

Inductor chooses among kernels by their times on the GPU. Where other work disturbs that, it chooses a slow one for the
whole session, and every speedup over it is too large. So a claim counts the faster one of both sessions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluator.types import BaselineTime, Interval

NAME = "known_baselines"  # in diagnostics and evidence
_EAGER = "eager"
_SLACK = 1.05  # by which a session's times may differ
_HARNESS_US = 5.0  # in a call that the wall clock times


def counted_us(
    known_us: Mapping[str, float], here_us: Mapping[str, float], *, by_device_clock: bool = True
) -> dict[str, float]:
    """Return the microseconds that count for compiled Baselines that are slower here than they were, by mode.

    `known_us` are the times of the earlier session, `here_us` those of this one. Eager PyTorch, which nobody tunes,
    tells how much slower the device is now; it is as fast as then where it was not timed. Unless the times here are
    `by_device_clock`, as Baselines' are among themselves, each call carries up to `_HARNESS_US` of the harness.
    """
    both = _EAGER in known_us and _EAGER in here_us
    pace = max(1.0, here_us[_EAGER] / known_us[_EAGER]) if both else 1.0
    more = 0.0 if by_device_clock else _HARNESS_US
    known = {mode: us for mode, us in known_us.items() if mode != _EAGER and mode in here_us}
    expected = {mode: pace * us + more for mode, us in known.items()}
    return {mode: us for mode, us in expected.items() if here_us[mode] > _SLACK * us}


def shift(logs: Sequence[float], here_us: float, counted: float | None) -> list[float]:
    """Return log ratios over a Baseline as if it had taken the time that counts; None: it did."""
    log = 0.0 if counted is None else math.log(counted / here_us)
    return [one + log for one in logs]


def counting(baselines: Sequence[BaselineTime], counted: Mapping[str, float]) -> tuple[BaselineTime, ...]:
    """Return Baselines with the times that count. Their samples stay as they were measured."""
    return tuple(_counting(one, counted[one.mode]) if one.mode in counted else one for one in baselines)


def _counting(one: BaselineTime, us: float) -> BaselineTime:
    factor, old = us / one.median_us, one.interval_us
    interval = Interval(low=factor * old.low, high=factor * old.high, confidence=old.confidence)
    return replace(one, median_us=us, interval_us=interval)


def told(here_us: Mapping[str, float], counted: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return both times of each Baseline that was slower here, to show."""
    return {mode: {"here_us": round(here_us[mode], 3), "counted_us": round(us, 3)} for mode, us in counted.items()}
