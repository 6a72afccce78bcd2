"""Selection of parents: fast ones more often than slow ones, and at times from another island."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from evolution.state import Broken, Elite

MIGRATION = 0.1
PRESSURE = 4.0
"""A kernel twice as fast as another has 2 ** 4 = 16 times as many children."""
MAX_REPAIRS = 2


def breeding_elites(elites: Sequence[Elite], island: int, rng: Random) -> list[Elite]:
    """Return the elites to breed from on an island: its own, or at times (or if it has none) those of another.

    A repaired kernel is one that runs at all: it breeds once it is as fast as the fastest Baseline.
    """
    elites = [elite for elite in elites if not elite.repaired or elite.speedup >= 1.0]
    own = [elite for elite in elites if elite.island == island]
    others = sorted({elite.island for elite in elites if elite.island != island})
    if others and (not own or rng.random() < MIGRATION):
        source = rng.choice(others)
        return [elite for elite in elites if elite.island == source]
    return own


def sample_parent(elites: Sequence[Elite], rng: Random) -> Elite:
    """Draw one parent with weight speedup ** PRESSURE. `elites` is not empty."""
    fastest = max(elite.speedup for elite in elites)
    if fastest <= 0:
        return rng.choice(elites)
    return rng.choices(elites, [(elite.speedup / fastest) ** PRESSURE for elite in elites])[0]


def sample_parents(elites: Sequence[Elite], rng: Random) -> tuple[Elite, Elite]:
    """Draw two different parents for a crossover, so of two designs. Needs at least two elites."""
    first = sample_parent(elites, rng)
    return first, sample_parent([elite for elite in elites if elite.candidate_id != first.candidate_id], rng)


def newest_repairable(broken: Sequence[Broken], used: frozenset[str]) -> Broken | None:
    """Return the newest Candidate that may still be repaired, or None. `broken` is newest first."""
    return next((b for b in broken if b.repairs < MAX_REPAIRS and b.candidate_id not in used), None)
