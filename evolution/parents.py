"""Who breeds: exploitation of the fast, novelty of the rare niche, and now and then a migrant from another island."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from evolution.state import Broken, Elite

MIGRATION = 0.1
NOVELTY = 0.3
MOST_REPAIRS = 2


def islanders(elites: Sequence[Elite], island: int, rng: Random) -> list[Elite]:
    """The elites to breed from on an island: its own, or at times (or where it has none) those of another island."""
    own = [elite for elite in elites if elite.island == island]
    others = sorted({elite.island for elite in elites if elite.island != island})
    if others and (not own or rng.random() < MIGRATION):
        source = rng.choice(others)
        return [elite for elite in elites if elite.island == source]
    return own


def sample(elites: Sequence[Elite], rng: Random) -> Elite:
    """One parent: with NOVELTY any cell alike, else the faster of three drawn. `elites` is not empty."""
    if rng.random() < NOVELTY:
        return rng.choice(elites)
    return max((rng.choice(elites) for _ in range(3)), key=lambda elite: (elite.speedup, elite.candidate_id))


def sample_pair(elites: Sequence[Elite], rng: Random) -> tuple[Elite, Elite]:
    """Two different parents for a crossover, of different niches where there are any. Needs at least two elites."""
    first = sample(elites, rng)
    rest = [elite for elite in elites if elite.candidate_id != first.candidate_id]
    apart = [elite for elite in rest if elite.niche != first.niche]
    return first, sample(apart or rest, rng)


def sample_broken(broken: Sequence[Broken], used: frozenset[str]) -> Broken | None:
    """The newest Candidate that is worth a repair, or None. `broken` is newest first."""
    return next((b for b in broken if b.repairs < MOST_REPAIRS and b.candidate_id not in used), None)
