"""The number of CPU threads that references, Baselines and Candidates have, and the cores that they have for that."""

from __future__ import annotations

import os

from evaluator.errors import CageError

THREADS_VARIABLE = "WARPWRIGHT_CPU_THREADS"


def asked_threads(cores: int) -> tuple[int, ...]:
    """Return the numbers of threads to judge with on `cores` cores: 1, or those of WARPWRIGHT_CPU_THREADS.

    The first one is for all; kernels that pass are judged with the others, too. Raise CageError where it asks for no
    number or for more than there are.
    """
    found: dict[int, None] = {}
    for word in (os.environ.get(THREADS_VARIABLE) or "1").split(","):
        if word != "all" and (not word.isdecimal() or not 1 <= int(word) <= cores):
            raise CageError(
                f"{THREADS_VARIABLE} is a number from 1 to {cores} (the cores of this machine) or all, or several with"
                f" commas, not {word[:40]!r}"
            )
        found[cores if word == "all" else int(word)] = None
    return tuple(found)


def reserve_cores(cpus: set[int], count: int = 1) -> tuple[frozenset[int], frozenset[int]]:
    """Return the cores for timing (the last ones allowed) and those for everything else (the same if none is left)."""
    cores = frozenset(sorted(cpus)[-count:])
    return cores, frozenset(cpus - cores) or cores
