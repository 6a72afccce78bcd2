"""Speedups with their intervals, from logarithms of paired ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.timing import stats
from evaluator.types import Ratio, Workload


def speedups(logs: Mapping[str, Sequence[tuple[Workload, list[float]]]], workloads: int) -> list[Ratio]:
    """Return Ratios for each Workload, and over all of them where every Workload was timed against that comparator.
    `logs` maps a comparator's name to log ratios."""
    found: list[Ratio] = []
    for against, parts in logs.items():
        for workload, samples in parts:
            value, interval = stats.ratio_interval(samples)
            found.append(Ratio(against=against, value=value, interval=interval, workload=workload.name))
        if len(parts) == workloads:
            value, interval = stats.combine([s for _, s in parts], [w.weight for w, _ in parts])
            found.append(Ratio(against=against, value=value, interval=interval))
    return found
