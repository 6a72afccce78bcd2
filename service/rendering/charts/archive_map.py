"""The Archive as a map: islands down, Niches across, in every cell its fastest elite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from db.views.rows import CandidateView

HEATS = 6
MOST_COLUMNS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An elite. `heat` is between 0 (no faster than the Baseline) and HEATS (the fastest here)."""

    candidate: CandidateView
    heat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMap:
    """`columns` are Niches in words; a row is an island with its cells in their order, None where one is empty."""

    columns: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[int, tuple[Cell | None, ...]], ...]
    filled: int
    more: int


def archive_map(elites: Sequence[CandidateView], islands: int) -> ArchiveMap:
    """Map these elites (fastest first); the Niches of the fastest where there are too many to show."""
    best: dict[str, float] = {}
    for one in elites:
        best[one.niche] = max(best.get(one.niche, 0.0), one.speedup.value if one.speedup is not None else 0.0)
    niches = sorted(sorted(best, key=lambda niche: -best[niche])[:MOST_COLUMNS])
    fastest = max(best.values(), default=1.0)
    by_cell: dict[tuple[int, str], CandidateView] = {}
    for one in elites:
        by_cell.setdefault((one.island, one.niche), one)
    rows = sorted({*range(islands), *(one.island for one in elites)})
    return ArchiveMap(
        columns=tuple(tuple(niche.split("/")) for niche in niches),
        rows=tuple(
            (island, tuple(_cell(by_cell.get((island, niche)), fastest) for niche in niches)) for island in rows
        ),
        filled=len(by_cell),
        more=max(0, len(best) - MOST_COLUMNS),
    )


def _cell(candidate: CandidateView | None, fastest: float) -> Cell | None:
    if candidate is None:
        return None
    value = candidate.speedup.value if candidate.speedup is not None else 1.0
    share = math.log(max(value, 1.0)) / math.log(max(fastest, 1.01))
    return Cell(candidate=candidate, heat=round(HEATS * min(1.0, share)))
