"""Numbers with units, three significant digits each: 8.90 us, 15.0 ms, 3.35 TB/s, 2.10 MB."""

from __future__ import annotations

_TIMES = ("us", "ms", "s")
_PREFIXES = ("", "k", "M", "G", "T", "P")


def time(microseconds: float) -> str:
    """Return a time in the unit that suits it: "8.90 us", "15.0 ms", "2.00 s"."""
    return _scaled(microseconds, _TIMES)


def size(count: float) -> str:
    """Return a number of bytes with a decimal prefix: "2.10 MB"."""
    return _scaled(count, tuple(f"{prefix}B" for prefix in _PREFIXES))


def rate(bytes_per_second: float) -> str:
    """Return a bandwidth with a decimal prefix: "3.35 TB/s"."""
    return f"{size(bytes_per_second)}/s"


def watts(power: float) -> str:
    """Return a power: "700 W"."""
    return f"{power:.0f} W"


def operations(count: float) -> str:
    """Return a number of floating-point operations with a decimal prefix: "4.29 GFLOP"."""
    return _scaled(count, tuple(f"{prefix}FLOP" for prefix in _PREFIXES))


def _scaled(value: float, units: tuple[str, ...]) -> str:
    index = 0
    while abs(value) >= 999.5 and index + 1 < len(units):
        value /= 1000
        index += 1
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{decimals}f} {units[index]}"
