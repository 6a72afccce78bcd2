"""ShinkaEvolve's program database: islands, archive, weighted parents, repairs, and its novelty check.

It refuses an equal program before it is run.
"""

from __future__ import annotations

import logging
import random
from typing import Any

from bench.search.landscape import Kernel, Landscape, Meter
from bench.search.peers.population import Population

ATTEMPTS = 3
"""Times that it asks again after a proposal that is not new."""
CROSS = 0.1


def shinkaevolve(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Run it with its default settings."""
    import numpy  # noqa: PLC0415  it draws from its global generator
    from shinka.database.dbase import DatabaseConfig, Program, ProgramDatabase  # noqa: PLC0415  optional

    logging.disable(logging.CRITICAL)
    found = Population(land, "shinka", seed, tuner)
    random.seed(seed)
    numpy.random.seed(seed)
    database: Any = ProgramDatabase(DatabaseConfig(), embedding_model="")
    database._print_sampling_summary_helper = lambda *_, **__: None

    def add(kernel: Kernel, parent: str | None, number: int, speed: float) -> None:
        code = found.code(kernel)
        made = Program(
            id=f"{number:06d}", code=code, parent_id=parent, generation=number, combined_score=speed,
            correct=kernel.passed, complexity=float(len(code)), timestamp=float(number),
        )  # fmt: skip
        database.add(made)
        database.check_scheduled_operations()

    first = found.proposer.propose(None)
    add(first, None, 0, found.measure(first))
    number = 0
    while not found.meter.over(most, least):
        number += 1
        for attempt in range(ATTEMPTS):
            parent, archive, top, fix = database.sample_with_fix_mode()
            shown = [found.kernels[p.code] for p in (*archive, *top)]
            crossed = bool(shown) and not fix and found.rng.random() < CROSS
            other = found.rng.choice(shown) if crossed else None
            child = found.proposer.propose(found.kernels[parent.code], other, repair=fix)
            if child.origin is not None or land.code(child) not in found.kernels:  # no slip repeats
                break
            if attempt < ATTEMPTS - 1:
                found.meter.propose()
        add(child, parent.id, number, found.measure(child))
        better = found.tune()
        if better is not None:
            number += 1
            add(better[0], parent.id, number, better[1])
    database.close()
    return found.meter
