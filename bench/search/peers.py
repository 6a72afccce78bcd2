"""Other searches, driven with the same scripted proposer and, where asked, the same tuner.

OpenEvolve and ShinkaEvolve are bench-only and optional: `pip install openevolve shinka-evolve`. Their own databases
choose parents and keep populations; prompts, models and processes are left out, since the proposer is scripted.
"""

from __future__ import annotations

import importlib.util
import logging
import random
from collections.abc import Callable
from typing import Any

from bench.search.landscape import Kernel, Landscape, Meter, Proposer
from evolution.tunables import next_configuration

Search = Callable[[Landscape, int, int, bool], int | None]


class _Tuned:
    """The tuner for those who have none: every other measurement tries a neighbour of the fastest kernel."""

    def __init__(self, land: Landscape, meter: Meter, rng: random.Random, on: bool) -> None:
        self.land, self.meter, self.rng, self.on = land, meter, rng, on
        self.best: tuple[float, Kernel] | None = None
        self.tried: set[str] = set()

    def measure(self, kernel: Kernel) -> float:
        found = self.meter.measure(kernel)
        if kernel.passed and (self.best is None or found > self.best[0]):
            self.best = found, kernel
        return found

    def step(self) -> Kernel | None:
        """A tuned kernel that was measured, or None."""
        if not self.on or self.best is None or not self.best[1].tunables:
            return None
        best = self.best[1]
        wanted = next_configuration(best.tunables, best.configuration, frozenset(), self.rng)
        child = self.land.at(best.family, wanted) if wanted is not None else None
        if child is None or child.hash in self.tried:
            return None
        self.tried.add(child.hash)
        self.measure(child)
        return child


def random_search(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Any recorded kernel, each as likely as the other."""
    rng = random.Random(f"random/{seed}")
    meter = Meter(land, rng)
    kernels = sorted(land.kernels.values(), key=lambda kernel: kernel.hash)
    while meter.count < most and meter.reached_at is None:
        meter.measure(rng.choice(kernels))
    return meter.reached_at


def best_of_n(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """The proposer asked from the reference alone, over and over."""
    rng = random.Random(f"best/{seed}")
    meter, proposer = Meter(land, rng), Proposer(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    while meter.count < most and meter.reached_at is None:
        tuned.measure(proposer.propose(None))
        tuned.step()
    return meter.reached_at


def openevolve(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """OpenEvolve's program database: islands, its feature map, its parents and its migration."""
    from openevolve.config import DatabaseConfig  # noqa: PLC0415  optional
    from openevolve.database import Program, ProgramDatabase  # noqa: PLC0415

    logging.disable(logging.WARNING)
    rng = random.Random(f"openevolve/{seed}")
    meter, proposer = Meter(land, rng), Proposer(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    database: Any = ProgramDatabase(DatabaseConfig(random_seed=seed))

    def of(program: Any) -> Kernel:
        return land.kernels[program.code.split("\n", 1)[0]]  # migrants are copies under new ids

    def add(kernel: Kernel, parent: str | None, number: int, speed: float, island: int) -> None:
        name = f"{number:06d}"
        metrics = {"combined_score": speed}
        code = f"{kernel.hash}\n{kernel.family}\n{sorted(kernel.configuration.items())}\n{kernel.niche}"
        database.add(Program(id=name, code=code, parent_id=parent, metrics=metrics), number, target_island=island)

    first = proposer.propose(None)
    add(first, None, 0, tuned.measure(first), 0)
    number = 0
    while meter.count < most and meter.reached_at is None:
        number += 1
        island = number % len(database.islands)
        parent, inspirations = database.sample_from_island(island, 3)
        other = of(inspirations[0]) if inspirations and rng.random() < 0.2 else None
        mother = of(parent)
        child = proposer.propose(mother if mother.passed else None, other if mother.passed else None)
        add(child, parent.id, number, tuned.measure(child), island)
        better = tuned.step()
        if better is not None and tuned.best is not None:
            number += 1
            add(better, parent.id, number, tuned.best[0] if tuned.best[1] is better else 0.0, island)
        database.increment_island_generation(island)
        if database.should_migrate():
            database.migrate_programs()
    return meter.reached_at


def searches() -> dict[str, Search]:
    """Those that this machine has."""
    found: dict[str, Search] = {"random": random_search, "best-of-N": best_of_n}
    if importlib.util.find_spec("openevolve") is not None:
        found["OpenEvolve"] = openevolve
    return found
