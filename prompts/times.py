"""Measurements as text. A kernel's time is compared with the Baseline's from the same session only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evaluator.types import BaselineTime, Measurement, Ratio
from prompts import units


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One Workload: the time per call, the Baseline timed in alternation with it, and their ratio."""

    workload: str
    time: Measurement
    baseline: BaselineTime | None
    ratio: Ratio | None
    over_floor: float | None
    pairs: int
    discarded: int


def rows(
    measurements: Sequence[Measurement], ratios: Sequence[Ratio], shown: Collection[str], floors: Mapping[str, float]
) -> list[Row]:
    """Return a row for each timed Workload that may be shown."""
    by_workload = {one.workload: one for one in ratios}
    return [
        Row(
            workload=m.workload,
            time=m,
            baseline=min(m.baselines, key=lambda time: time.median_us) if m.baselines else None,
            ratio=by_workload.get(m.workload),
            over_floor=m.median_us / floors[m.workload] if m.workload in floors else None,
            pairs=int(m.diagnostics.get("pairs", len(m.samples_us))),
            discarded=int(m.diagnostics.get("discarded_pairs", 0)),
        )
        for m in measurements
        if m.workload in shown
    ]


def was_disturbed(found: Sequence[Row]) -> bool:
    """Return True if other work on the machine spoilt more pairs of rounds than were kept."""
    return any(row.discarded > row.pairs for row in found)


def headline(ratios: Sequence[Ratio]) -> Ratio | None:
    """Return the Ratio over all Workloads."""
    return next((one for one in ratios if one.workload is None), None)


def brief(
    measurements: Sequence[Measurement], ratios: Sequence[Ratio], shown: Collection[str], *, outdated: bool
) -> str:
    """Return a short text: "2.15 times the fastest baseline (a: 2.40 times, 161 us; b: 1.92 times, 170 us)".

    It begins with "an estimated" for ratios that are `outdated`.
    """
    whole = headline(ratios)
    parts = [
        f"{row.workload}: {f'{row.ratio.value:.2f} times, ' if row.ratio else ''}{units.time(row.time.median_us)}"
        for row in rows(measurements, ratios, shown, {})
    ]
    if whole is None:
        return "; ".join(parts)
    low, high = whole.interval.low, whole.interval.high
    text = f"{'an estimated ' * outdated}{whole.value:.2f} times the fastest baseline ({low:.2f} to {high:.2f})"
    return f"{text}: {'; '.join(parts)}" if len(parts) > 1 else text
