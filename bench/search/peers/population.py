"""The steps that every other search shares: a proposal, its measurement, and the tuner's turn."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.search.landscape import Kernel, Known, Landscape, Meter, Proposer
from evolution.tuning import next_configuration

Search = Callable[[Landscape, int, int, int, bool], Meter]
"""(landscape, seed, most measurements, least proposals, tuner): the meter after the search."""


class Population:
    """One search: its generator, its meter, the proposer, and on request our tuner at every other proposal."""

    def __init__(self, land: Landscape, name: str, seed: int, tuner: bool) -> None:
        self.land, self.tuner = land, tuner
        self.rng = random.Random(f"{name}/{seed}")
        self.meter = Meter(land, self.rng)
        self.proposer = Proposer(land, self.rng)
        self.known = Known(land)
        self.kernels: dict[str, Kernel] = {}
        """By code: migrants are copies under new ids."""

    def measure(self, kernel: Kernel) -> float:
        """Count a proposal, and return its measurement."""
        self.meter.propose()
        found = self.meter.measure(kernel)
        self.known.add(kernel.hash, kernel, found)
        return found

    def choose(self) -> Kernel | None:
        """Return the tuner's choice from all measurements, or None."""
        found = next_configuration(self.known.families(), self.rng) if self.tuner else None
        if found is None:
            return None
        self.known.tried(found[0].family, found[1])
        return self.land.at(found[0].family, found[1])

    def tune(self) -> tuple[Kernel, float] | None:
        """Return the tuner's choice with its measurement, or None."""
        child = self.choose()
        return None if child is None else (child, self.measure(child))

    def child(self, parent: Kernel, other: Kernel | None = None) -> Kernel:
        """Return an answer to a prompt that shows a parent, and perhaps another kernel; of a broken one, a repair."""
        return self.proposer.propose(parent, other if parent.passed else None, repair=not parent.passed)

    def code(self, kernel: Kernel) -> str:
        """Return a kernel's code, under which it is found again."""
        code = self.land.code(kernel)
        self.kernels[code] = kernel
        return code
