"""The number of CPU threads that references, Baselines and Candidates have, and the cores that they have for that."""

from __future__ import annotations

import os

from evaluator.errors import CageError

THREADS_VARIABLE = "WARPWRIGHT_CPU_THREADS"


def asked_threads(cores: int) -> int:
    """Return the number of threads that judged code gets on `cores` cores: 1, or what WARPWRIGHT_CPU_THREADS says.

    Raise CageError where it asks for no number or for more than there are.
    """
    word = os.environ.get(THREADS_VARIABLE) or "1"
    if word == "all":
        return cores
    if not word.isdecimal() or not 1 <= int(word) <= cores:
        raise CageError(
            f"{THREADS_VARIABLE} is a number from 1 to {cores} (the cores of this machine) or all, not {word[:40]!r}"
        )
    return int(word)


def reserve_cores(cpus: set[int], count: int = 1) -> tuple[frozenset[int], frozenset[int]]:
    """Return the cores for timing (the last ones allowed) and those for everything else (the same if none is left)."""
    cores = frozenset(sorted(cpus)[-count:])
    return cores, frozenset(cpus - cores) or cores
