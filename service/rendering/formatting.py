"""Numbers for readers. Every function takes plain values and returns text."""

from __future__ import annotations

from datetime import datetime

DASH = "–"


def times(value: float) -> str:
    """Format a ratio: 2.31×, 12.4×, 1.008×."""
    if abs(value - 1) < 0.05:
        return f"{value:.3f}×"
    return f"{value:.2f}×" if value < 10 else f"{value:.1f}×"


def span(low: float, high: float) -> str:
    """Format an interval of ratios: 2.20–2.42."""
    digits = 3 if abs(low - 1) < 0.05 or abs(high - 1) < 0.05 else 2 if high < 10 else 1
    return f"{low:.{digits}f}{DASH}{high:.{digits}f}"


def duration_us(value: float) -> str:
    """Format microseconds with three significant digits and a fitting unit."""
    for limit, scale, unit in ((999.5, 1.0, "µs"), (999.5e3, 1e3, "ms")):
        if value < limit:
            return f"{_three(value / scale)} {unit}"
    return f"{_three(value / 1e6)} s"


def duration_s(value: float) -> str:
    """Format seconds: 0.4 s, 12 s, 3 min 20 s, 10 min, 2 h 5 min."""
    if value < 10:
        return f"{value:.1f} s"
    seconds = round(value)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min" + f" {seconds} s" * (seconds > 0)
    return f"{minutes // 60} h" + f" {minutes % 60} min" * (minutes % 60 > 0)


def usd(value: float) -> str:
    """Format dollars; below a dollar with hundredths of a cent."""
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def count(value: int) -> str:
    """Format a whole number with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u2009")


def whole(value: float) -> str:
    """Round to a whole number."""
    return count(round(value))


def moment(value: str) -> str:
    """Format an ISO 8601 moment in UTC, for readers without scripts."""
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return value
    return f"{parsed:%Y-%m-%d %H:%M} UTC"


def words(value: str) -> str:
    """Turn an identifier into words: NOT_A_THING becomes "not a thing"."""
    return value.replace("_", " ").lower()


def plural(number: int, one: str, many: str) -> str:
    """Format a count with its noun: 1 run, 2 runs."""
    return f"{count(number)} {one if number == 1 else many}"


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
