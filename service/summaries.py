"""The leaderboard in a few numbers: the count of Champions, and their speedups, over everything or by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean, median

from db.views.rows import LeaderboardEntry
from service.schemas.answers import SummaryAnswer

GROUPS = ("everything", "device", "device_name", "language", "proposer", "model", "family", "problem")

_KEYS: Mapping[str, Callable[[LeaderboardEntry], str]] = {
    "everything": lambda row: "",
    "device": lambda row: row.device_kind.value,
    "device_name": lambda row: row.device_name,
    "language": lambda row: row.language.value,
    "proposer": lambda row: row.proposer,
    "model": lambda row: row.model,
    "family": lambda row: row.family.value,
    "problem": lambda row: row.problem_name,
}


def group_summaries(rows: Sequence[LeaderboardEntry], by: str) -> tuple[SummaryAnswer, ...]:
    """Return one summary for each group, the largest first."""
    groups: dict[str, list[LeaderboardEntry]] = {}
    for row in rows:
        groups.setdefault(_KEYS[by](row), []).append(row)
    found = [_summary(name, members) for name, members in groups.items()]
    return tuple(sorted(found, key=lambda one: (-one.champions, one.group)))


def _summary(name: str, rows: Sequence[LeaderboardEntry]) -> SummaryAnswer:
    speedups = [row.against_fastest.value for row in rows]
    best = max(rows, key=lambda row: row.against_fastest.value)
    shares = [row.roofline for row in rows if row.roofline is not None]
    return SummaryAnswer(
        group=name,
        champions=len(rows),
        problems=len({row.problem_id for row in rows}),
        geometric_mean_speedup=geometric_mean(speedups),
        median_speedup=median(speedups),
        best_speedup=best.against_fastest.value,
        best_candidate_id=best.candidate_id,
        median_roofline=median(shares) if shares else None,
    )
