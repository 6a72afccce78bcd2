"""Times as a person reads them: 8.90 us, 15.0 ms, 2.00 s."""

from __future__ import annotations

_UNITS = ("us", "ms", "s")


def time_text(microseconds: float) -> str:
    """Return a time with three significant digits."""
    value, unit = microseconds, 0
    while value >= 999.5 and unit + 1 < len(_UNITS):
        value, unit = value / 1000, unit + 1
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f} {_UNITS[unit]}"
