"""Run other searches with the same scripted proposer and, on request, the same tuner.

OpenEvolve and ShinkaEvolve are bench-only and optional: `pip install openevolve shinka-evolve`. Their own databases
choose parents and keep populations, with their default settings. Prompts, models and processes are left out, since the
proposer is scripted. ShinkaEvolve refuses an equal program before it is run, as its novelty check does.
"""

from __future__ import annotations

import importlib.util
import logging
import random
from collections.abc import Callable
from typing import Any

from bench.search.landscape import Kernel, Known, Landscape, Meter, Proposer
from evolution.tuning import next_configuration

Search = Callable[[Landscape, int, int, bool], int | None]
SHINKA_ATTEMPTS = 3
"""Times that ShinkaEvolve asks again after a proposal that is not new."""
RANDOM_CROSS = 0.2
SHINKA_CROSS = 0.1
OPENEVOLVE_CROSS = 0.2


class _Tuned:
    """Our tuner for searches without one: every other measurement is its choice, from all measurements so far."""

    def __init__(self, land: Landscape, meter: Meter, rng: random.Random, on: bool) -> None:
        self.land, self.meter, self.rng, self.on = land, meter, rng, on
        self.known = Known(land)

    def measure(self, kernel: Kernel) -> float:
        found = self.meter.measure(kernel)
        self.known.add(kernel.hash, kernel, found)
        return found

    def step(self) -> tuple[Kernel, float] | None:
        """Return a tuned and measured kernel with its measurement, or None."""
        found = next_configuration(self.known.families(), self.rng) if self.on else None
        if found is None:
            return None
        child = self.land.at(found[0].family, found[1])
        self.known.tried(found[0].family, found[1])
        return child, self.measure(child)


def random_search(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Improve any kernel that passed, or cross any two, all equally likely."""
    rng = random.Random(f"random/{seed}")
    meter, proposer = Meter(land, rng), Proposer(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    passed: list[Kernel] = []
    while meter.count < most and meter.reached_at is None:
        parents = rng.sample(passed, min(len(passed), 1 + (rng.random() < RANDOM_CROSS)))
        child = proposer.propose(*parents) if parents else proposer.propose(None)
        tuned.measure(child)
        better = tuned.step()
        passed += [kernel for kernel in (child, better and better[0]) if kernel and kernel.passed]
    return meter.reached_at


def draw_any(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Draw any recorded kernel, all equally likely. No search can do that.

    It draws a kernel of many edits as easily as a first draft, and seldom a slip. It is reported with the others, since
    it is hard to beat.
    """
    rng = random.Random(f"random/{seed}")
    kernels = sorted(land.kernels.values(), key=lambda kernel: kernel.hash)
    return _measure_until_goal(land, rng, most, tuner, lambda: rng.choice(kernels))


def best_of_n(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Ask the proposer from the reference alone, repeatedly."""
    rng = random.Random(f"best/{seed}")
    proposer = Proposer(land, rng)
    return _measure_until_goal(land, rng, most, tuner, lambda: proposer.propose(None))


def _measure_until_goal(
    land: Landscape, rng: random.Random, most: int, tuner: bool, draw: Callable[[], Kernel]
) -> int | None:
    """Measure every drawn kernel until the goal. Only the tuner learns from it."""
    meter = Meter(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    while meter.count < most and meter.reached_at is None:
        tuned.measure(draw())
        tuned.step()
    return meter.reached_at


def openevolve(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Run OpenEvolve's program database: islands, its feature map, its parents and its migration."""
    from openevolve.config import DatabaseConfig  # noqa: PLC0415  optional
    from openevolve.database import Program, ProgramDatabase  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    rng = random.Random(f"openevolve/{seed}")
    meter, proposer = Meter(land, rng), Proposer(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    database: Any = ProgramDatabase(DatabaseConfig(random_seed=seed))
    kernels: dict[str, Kernel] = {}  # by code: migrants are copies under new ids

    def add(kernel: Kernel, parent: str | None, number: int, speed: float, island: int) -> None:
        code = land.code(kernel)
        kernels[code] = kernel
        made = Program(id=f"{number:06d}", code=code, parent_id=parent, metrics={"combined_score": speed})
        database.add(made, number, target_island=island)

    first = proposer.propose(None)
    add(first, None, 0, tuned.measure(first), 0)
    number = 0
    while meter.count < most and meter.reached_at is None:
        number += 1
        island = number % len(database.islands)
        parent, inspirations = database.sample_from_island(island, 3)
        mother = kernels[parent.code]
        crossed = bool(inspirations) and mother.passed and rng.random() < OPENEVOLVE_CROSS
        child = proposer.propose(mother, kernels[inspirations[0].code] if crossed else None, repair=not mother.passed)
        add(child, parent.id, number, tuned.measure(child), island)
        better = tuned.step()
        if better is not None:
            number += 1
            add(better[0], parent.id, number, better[1], island)
        database.increment_island_generation(island)
        if database.should_migrate():
            database.migrate_programs()
    return meter.reached_at


def shinkaevolve(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Run ShinkaEvolve's program database: islands, archive, weighted parents, repairs, and its novelty check."""
    import numpy  # noqa: PLC0415  ShinkaEvolve draws from its global generator
    from shinka.database.dbase import DatabaseConfig, Program, ProgramDatabase  # noqa: PLC0415  optional

    logging.disable(logging.CRITICAL)
    rng = random.Random(f"shinka/{seed}")
    random.seed(seed)
    numpy.random.seed(seed)
    meter, proposer = Meter(land, rng), Proposer(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    database: Any = ProgramDatabase(DatabaseConfig(), embedding_model="")
    database._print_sampling_summary_helper = lambda *_, **__: None
    kernels: dict[str, Kernel] = {}

    def add(kernel: Kernel, parent: str | None, number: int, speed: float) -> None:
        code = land.code(kernel)
        kernels[code] = kernel
        made = Program(
            id=f"{number:06d}", code=code, parent_id=parent, generation=number, combined_score=speed,
            correct=kernel.passed, complexity=float(len(code)), timestamp=float(number),
        )  # fmt: skip
        database.add(made)
        database.check_scheduled_operations()

    first = proposer.propose(None)
    add(first, None, 0, tuned.measure(first))
    number = 0
    while meter.count < most and meter.reached_at is None:
        number += 1
        for _ in range(SHINKA_ATTEMPTS):
            parent, archive, top, fix = database.sample_with_fix_mode()
            shown = [kernels[p.code] for p in (*archive, *top)]
            crossed = bool(shown) and not fix and rng.random() < SHINKA_CROSS
            child = proposer.propose(kernels[parent.code], rng.choice(shown) if crossed else None, repair=fix)
            if child.origin is not None or land.code(child) not in kernels:  # no slip repeats
                break
        add(child, parent.id, number, tuned.measure(child))
        better = tuned.step()
        if better is not None:
            number += 1
            add(better[0], parent.id, number, better[1])
    database.close()
    return meter.reached_at


def searches() -> dict[str, Search]:
    """Return the searches that this machine has."""
    found: dict[str, Search] = {"random": random_search, "best-of-N": best_of_n, "drawn from the recording": draw_any}
    if importlib.util.find_spec("openevolve") is not None:
        found["OpenEvolve"] = openevolve
    if importlib.util.find_spec("shinka") is not None:
        found["ShinkaEvolve"] = shinkaevolve
    return found
