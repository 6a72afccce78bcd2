"""Spend against budget, in words and as shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evolution.types import Run
from service.rendering import formatting


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One limit of a budget and the used part of it. `share` is between 0 and 1, None without a limit."""

    label: str
    used: str
    limit: str | None
    share: float | None


def gauges(run: Run) -> list[Gauge]:
    """Return spend against budget for each quantity with a limit or with use."""
    budget, spend = run.budget, run.spend
    lines = [
        _gauge("Candidates", spend.candidates, budget.candidates, _whole),
        _gauge("Tokens", spend.tokens, budget.tokens, _whole),
        _gauge("Dollars", spend.usd, budget.usd, formatting.usd),
        _gauge("Device time", spend.device_s, budget.device_s, formatting.duration_s),
        _gauge("Wall time", spend.wall_s, budget.wall_s, formatting.duration_s),
    ]
    return [gauge for gauge in lines if gauge is not None]


def _whole(value: float) -> str:
    return formatting.count(int(value))


def _gauge(label: str, used: float, limit: float | None, text: Callable[[float], str]) -> Gauge | None:
    if limit is None:
        return Gauge(label=label, used=text(used), limit=None, share=None) if used else None
    return Gauge(label=label, used=text(used), limit=text(limit), share=min(1.0, used / limit))
