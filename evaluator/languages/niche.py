"""The niche of a Candidate, read from its text alone: its use of memory, its arithmetic, and how it spreads its work.

Words in a source are weak evidence, but they need no device and no compiler. Pages and prompts only need a few words
that tell kernels apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Rules = tuple[tuple[str, re.Pattern[str]], ...]
"""Strategies with the pattern that reveals each. The first match names the strategy: rarer techniques come first."""


def rules(*pairs: tuple[str, str]) -> Rules:
    """Compile (strategy, pattern) pairs."""
    return tuple((name, re.compile(pattern)) for name, pattern in pairs)


@dataclass(frozen=True, slots=True)
class Niche:
    """A kind of kernel; `str` gives "memory/compute/parallelisation"."""

    memory: str
    compute: str
    parallel: str

    def __str__(self) -> str:
        return f"{self.memory}/{self.compute}/{self.parallel}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NicheRules:
    """The techniques of one language, one list for each axis of its niches."""

    memory: Rules = ()
    compute: Rules = ()
    parallel: Rules = ()

    def niche(self, source: str) -> Niche:
        """Return the niche of a source; "plain" on every axis where no technique is named."""
        return Niche(*(_first(axis, source) for axis in (self.memory, self.compute, self.parallel)))


def _first(axis: Rules, source: str) -> str:
    return next((name for name, pattern in axis if pattern.search(source)), "plain")
