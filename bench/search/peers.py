"""Other searches, driven with the same scripted proposer and, where asked, the same tuner.

OpenEvolve and ShinkaEvolve are bench-only and optional: `pip install openevolve shinka-evolve`. Their own databases
choose parents and keep populations, with the settings that they ship; prompts, models and processes are left out, since
the proposer is scripted. ShinkaEvolve turns an equal program away before it is run, as its novelty check does.
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
"""How often ShinkaEvolve asks again where a proposal is not new."""
RANDOM_CROSS = 0.2
SHINKA_CROSS = 0.1
OPENEVOLVE_CROSS = 0.2


class _Tuned:
    """Our tuner for those who have none: every other measurement is its choice, from all that was measured so far."""

    def __init__(self, land: Landscape, meter: Meter, rng: random.Random, on: bool) -> None:
        self.land, self.meter, self.rng, self.on = land, meter, rng, on
        self.known = Known(land)

    def measure(self, kernel: Kernel) -> float:
        found = self.meter.measure(kernel)
        self.known.add(kernel.hash, kernel, found)
        return found

    def step(self) -> tuple[Kernel, float] | None:
        """A tuned kernel that was measured and what that said, or None."""
        found = next_configuration(self.known.families(), self.rng) if self.on else None
        if found is None:
            return None
        child = self.land.at(found[0].family, found[1])
        self.known.tried(found[0].family, found[1])
        return child, self.measure(child)


def random_search(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """The proposer asked to improve any kernel that passed, or one of two of them, each as likely as the other."""
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


def drawn(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """Any recorded kernel, each as likely as the other. No search can do that: it draws what took an author many edits
    as easily as a first draft, and seldom a slip. It is told beside the others, since it is hard to beat."""
    rng = random.Random(f"random/{seed}")
    kernels = sorted(land.kernels.values(), key=lambda kernel: kernel.hash)
    return _over_and_over(land, rng, most, tuner, lambda: rng.choice(kernels))


def best_of_n(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """The proposer asked from the reference alone, over and over."""
    rng = random.Random(f"best/{seed}")
    proposer = Proposer(land, rng)
    return _over_and_over(land, rng, most, tuner, lambda: proposer.propose(None))


def _over_and_over(
    land: Landscape, rng: random.Random, most: int, tuner: bool, draw: Callable[[], Kernel]
) -> int | None:
    """Whatever is drawn, measured until the goal; nothing is learnt from it but by the tuner."""
    meter = Meter(land, rng)
    tuned = _Tuned(land, meter, rng, tuner)
    while meter.count < most and meter.reached_at is None:
        tuned.measure(draw())
        tuned.step()
    return meter.reached_at


def openevolve(land: Landscape, seed: int, most: int, tuner: bool) -> int | None:
    """OpenEvolve's program database: islands, its feature map, its parents and its migration."""
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
    """ShinkaEvolve's program database: islands, archive, weighted parents, repairs, and its novelty check."""
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
            if child.origin is not None or land.code(child) not in kernels:  # a slip is never the same again
                break
        add(child, parent.id, number, tuned.measure(child))
        better = tuned.step()
        if better is not None:
            number += 1
            add(better[0], parent.id, number, better[1])
    database.close()
    return meter.reached_at


def searches() -> dict[str, Search]:
    """Those that this machine has."""
    found: dict[str, Search] = {"random": random_search, "best-of-N": best_of_n, "drawn from the recording": drawn}
    if importlib.util.find_spec("openevolve") is not None:
        found["OpenEvolve"] = openevolve
    if importlib.util.find_spec("shinka") is not None:
        found["ShinkaEvolve"] = shinkaevolve
    return found
