"""Make deep landscapes: one first draft of a problem, and designs that are many edits away from it.

Each design has one more edit than another recorded one (a random tree, drawn before anything is measured), as far as
edits need or exclude each other. Only the device can tell the worth of an edit, alone and with others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench.search.designs import Design
from bench.search.linear_source import HEAD, LAUNCHED
from evaluator.types import Language

CONFIGURATIONS = 12
"""An author lists at most so many, picked out of the usual values."""
DRAFT = "draft"
Lists = dict[str, list[int]]


@dataclass(frozen=True)
class Lattice:
    """The edits of a draft: those that need another one first, that exclude each other, that no design builds on."""

    edits: tuple[str, ...]
    needs: Mapping[str, str]
    clash: tuple[frozenset[str], ...]
    dead: tuple[str, ...]
    lists: Callable[[frozenset[str]], Lists]
    source: Callable[[frozenset[str], Mapping[str, list[int]]], str]

    def applies(self, edits: frozenset[str]) -> bool:
        needed = all(self.needs[edit] in edits for edit in edits if edit in self.needs)
        return needed and not any(two <= edits for two in self.clash)

    def designs(self, seed: str, most: int) -> Iterator[Design]:
        """Return the draft, then a tree of edits; the same for the same seed."""
        rng = random.Random(seed)
        grown: list[frozenset[str]] = [frozenset()]
        seen = {frozenset[str]()}
        yield self._design(frozenset(), seed)
        for _ in range(200 * most):
            if len(seen) >= most:
                return
            name = rng.choice(self.edits)
            wanted = rng.choice(grown) | {name}
            if wanted in seen or not self.applies(wanted):
                continue
            seen.add(wanted)
            if name not in self.dead:
                grown.append(wanted)
            yield self._design(wanted, seed)

    def _design(self, edits: frozenset[str], seed: str) -> Design:
        listed = shorten_lists(self.lists(edits), CONFIGURATIONS, random.Random(f"{seed}/{sorted(edits)}"))
        return Design(DRAFT, tuple(sorted(edits)), self.source(edits, listed), Language.TRITON)


def shorten_lists(lists: Lists, most: int, rng: random.Random) -> Lists:
    """Drop values here and there until there are at most so many Configurations."""
    found = {name: list(values) for name, values in lists.items()}
    while math.prod(len(values) for values in found.values()) > most:
        name = rng.choices(list(found), [len(values) - 1 for values in found.values()])[0]
        found[name].remove(rng.choice(found[name]))
    return found


def module_header(lattice: Lattice, edits: frozenset[str], tunables: Mapping[str, list[int]]) -> str:
    """Return the top of a design's module: its description, imports, Tunables and the Configuration in force."""
    about = ", ".join([DRAFT, *(edit for edit in lattice.edits if edit in edits)])
    config = {name: values[0] for name, values in tunables.items()}
    return f"# {about}\n{HEAD}\nTUNABLES = {dict(tunables)!r}\nCONFIG = {config!r}\n\n\n"


def launch_arguments(tunables: Mapping[str, list[int]], without: tuple[str, ...] = ()) -> str:
    """Return the Tunables as arguments of a launch."""
    return ", ".join(f'{LAUNCHED.get(name, name)}=CONFIG["{name}"]' for name in tunables if name not in without)
