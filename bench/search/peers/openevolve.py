"""OpenEvolve's program database: islands, its feature map, its parents and its migration."""

from __future__ import annotations

import logging
from typing import Any

from bench.search.landscape import Kernel, Landscape, Meter
from bench.search.peers.population import Population

CROSS = 0.2


def openevolve(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Run it with its default settings."""
    from openevolve.config import DatabaseConfig  # noqa: PLC0415  optional
    from openevolve.database import Program, ProgramDatabase  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    found = Population(land, "openevolve", seed, tuner)
    database: Any = ProgramDatabase(DatabaseConfig(random_seed=seed))

    def add(kernel: Kernel, parent: str | None, number: int, speed: float, island: int) -> None:
        made = Program(id=f"{number:06d}", code=found.code(kernel), parent_id=parent, metrics={"combined_score": speed})
        database.add(made, number, target_island=island)

    first = found.proposer.propose(None)
    add(first, None, 0, found.measure(first), 0)
    number = 0
    while not found.meter.over(most, least):
        number += 1
        island = number % len(database.islands)
        parent, inspirations = database.sample_from_island(island, 3)
        crossed = bool(inspirations) and found.rng.random() < CROSS
        child = found.child(found.kernels[parent.code], found.kernels[inspirations[0].code] if crossed else None)
        add(child, parent.id, number, found.measure(child), island)
        better = found.tune()
        if better is not None:
            number += 1
            add(better[0], parent.id, number, better[1], island)
        database.increment_island_generation(island)
        if database.should_migrate():
            database.migrate_programs()
    return found.meter
