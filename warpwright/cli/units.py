"""Times and ratios as a person reads them: 8.90 us, 15.0 ms, 1.32x."""

from __future__ import annotations

from warpwright.api.judging import Ratio

_UNITS = ("us", "ms", "s")


def time_text(microseconds: float) -> str:
    """Return a time with three significant digits: "8.90 us", "15.0 ms", "2.00 s"."""
    value, unit = microseconds, 0
    while value >= 999.5 and unit + 1 < len(_UNITS):
        value, unit = value / 1000, unit + 1
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f} {_UNITS[unit]}"


def ratio_text(value: float) -> str:
    """Return a speedup: "1.32x"."""
    return f"{value:.2f}x"


def interval_text(ratio: Ratio) -> str:
    """Return a speedup with its confidence interval: "1.32x (1.28x to 1.36x)"."""
    return f"{ratio_text(ratio.value)} ({ratio_text(ratio.interval.low)} to {ratio_text(ratio.interval.high)})"
