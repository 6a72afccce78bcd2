"""AdaEvolve and EvoX, as SkyDiscover's package has them, with their default settings.

Two of their parts ask a model for something that is no kernel, and are scripted. AdaEvolve asks for a "paradigm", an
idea that breaks with the kernels so far: a paradigm is a new first draft here. EvoX has a model write another search
strategy: here it takes one of those that the package ships, an untried one first, then the one with the best score. Its
rules of when to change the strategy, and its scores of strategies, are the package's.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

from bench.search.landscape import Kernel, Landscape, Meter
from bench.search.peers.population import Population

CROSS = 0.2
INSPIRATIONS = 4
RETRIES = 2
"""A failure goes back to the model so often before it is given up."""
HORIZON = 10
"""EvoX: another strategy after a tenth of the run, of 100 proposals, without a gain of GAIN."""
GAIN = 0.01


def adaevolve(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Run AdaEvolve: islands chosen by its bandit, an archive each, its intensity, migration, spawning, paradigms."""
    from skydiscover.config import AdaEvolveDatabaseConfig  # noqa: PLC0415  optional
    from skydiscover.search.adaevolve.archive.diversity import CodeDiversity  # noqa: PLC0415
    from skydiscover.search.adaevolve.database import AdaEvolveDatabase  # noqa: PLC0415
    from skydiscover.search.base_database import Program  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    random.seed(seed)
    for name in ("_tokenize", "_extract_features"):
        _compute_once(CodeDiversity, name)
    found = Population(land, "adaevolve", seed, tuner)
    database: Any = AdaEvolveDatabase("adaevolve", AdaEvolveDatabaseConfig(random_seed=seed))

    def program(kernel: Kernel, parent: str | None, number: int, speed: float) -> Any:
        return Program(
            id=f"{number:06d}", solution=found.code(kernel), parent_id=parent, metrics={"combined_score": speed},
            iteration_found=number,
        )  # fmt: skip

    def paradigm() -> bool:
        if database.is_paradigm_stagnating() and not database.has_active_paradigm():
            database.set_paradigms([{"idea": "a new draft"}] * database.get_paradigm_num_to_generate())
        if database.get_current_paradigm() is None:
            return False
        database.use_paradigm()
        return True

    first = found.proposer.propose(None)
    database.seed_all_islands(program(first, None, 0, found.measure(first)), iteration=0)
    number = 0
    while not found.meter.over(most, least):
        number += 1
        if paradigm():
            parent, child = database.get_best_program(), found.proposer.propose(None)
        else:
            parent, child = _asked(found, database)
        database.add(program(child, parent.id, number, found.measure(child)), iteration=number, parent_id=parent.id)
        better = found.tune()
        if better is not None:
            made = program(better[0], parent.id, number + 500_000, better[1])
            database.add(made, iteration=number, parent_id=parent.id)
        database.end_iteration(number)
    return found.meter


def _compute_once(owner: Any, name: str) -> None:
    """Make a method that depends on texts alone remember its results; it is most of the time otherwise."""
    compute = getattr(owner, name)
    if hasattr(compute, "known"):
        return
    known: dict[tuple[str, ...], Any] = {}

    def remembered(self: Any, *texts: str) -> Any:
        if texts not in known:
            known[texts] = compute(self, *texts)
        return known[texts]

    remembered.known = known  # type: ignore[attr-defined]
    setattr(owner, name, remembered)


def _asked(found: Population, database: Any) -> tuple[Any, Kernel]:
    """Return the parent that a database samples, and the answer to its prompt."""
    parents, shown = database.sample(INSPIRATIONS)
    [parent] = parents.values()
    others = [program for programs in shown.values() for program in programs]
    crossed = bool(others) and found.rng.random() < CROSS
    other = found.kernels[found.rng.choice(others).solution] if crossed else None
    return parent, found.child(found.kernels[parent.solution], other)


def evox(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Run EvoX: its first strategy, another one where that stagnates, and each one's score."""
    logging.disable(logging.CRITICAL)
    random.seed(seed)
    found = Population(land, "evox", seed, tuner)
    strategies = _Strategies(seed, found.rng)
    strategies.add(found, found.proposer.propose(None), None)
    while not found.meter.over(most, least):
        parent, child = _asked(found, strategies.database)
        for _ in range(RETRIES):
            if child.passed:
                break
            found.measure(child)  # a failure is shown to the model, and not kept
            child = found.child(child)
        strategies.add(found, child, parent.id)
        tuned = found.choose()
        if tuned is not None:
            strategies.add(found, tuned, parent.id)
    return found.meter


class _Strategies:
    """SkyDiscover's own strategies, EvoX's first one first, and the one in force."""

    def __init__(self, seed: int, rng: random.Random) -> None:
        from skydiscover import config  # noqa: PLC0415  optional
        from skydiscover.search.base_database import Program  # noqa: PLC0415
        from skydiscover.search.beam_search.database import BeamSearchDatabase  # noqa: PLC0415
        from skydiscover.search.best_of_n.database import BestOfNDatabase  # noqa: PLC0415
        from skydiscover.search.evox.database.initial_search_strategy import EvolvedProgramDatabase  # noqa: PLC0415
        from skydiscover.search.evox.utils.search_scorer import LogWindowScorer  # noqa: PLC0415
        from skydiscover.search.topk.database import TopKDatabase  # noqa: PLC0415

        self._made: tuple[Callable[[], Any], ...] = (
            lambda: EvolvedProgramDatabase("evox", config.DatabaseConfig(random_seed=seed)),
            lambda: TopKDatabase("topk", config.DatabaseConfig(random_seed=seed)),
            lambda: BeamSearchDatabase("beam_search", config.BeamSearchDatabaseConfig(random_seed=seed)),
            lambda: BestOfNDatabase("best_of_n", config.BestOfNDatabaseConfig(random_seed=seed)),
        )
        _compute_once(BeamSearchDatabase, "_solution_distance")
        self._program, self._rng, self._scorer = Program, rng, LogWindowScorer()
        self._programs: list[Any] = []
        self._scores: dict[int, float] = {}
        self._active, self._stagnant, self._best = 0, 0, 0.0
        self.database: Any = self._made[0]()
        self._scorer.reset_window(0.0)

    def add(self, found: Population, kernel: Kernel, parent: str | None) -> None:
        """Measure a kernel and add it, and change the strategy if that stagnates."""
        speed, number = found.measure(kernel), len(self._programs)
        program = self._program(
            id=f"{number:06d}", solution=found.code(kernel), parent_id=parent, iteration_found=number,
            metrics={"combined_score": speed},
        )  # fmt: skip
        self._programs.append(program)
        self.database.add(program, iteration=number)
        self._stagnant = 0 if speed > self._best + GAIN else self._stagnant + 1
        self._best = max(self._best, speed)
        self._scorer.record_step(self._best)
        if self._stagnant >= HORIZON:
            self._change()

    def _change(self) -> None:
        """Score the strategy in force, and take an untried one, else the best; it gets all programs."""
        self._scores[self._active] = self._scorer.compute_metrics(horizon=HORIZON)["combined_score"]
        untried = [index for index in range(len(self._made)) if index not in self._scores]
        best = max(self._scores, key=lambda index: (self._scores[index], self._rng.random()))
        self._active, self._stagnant = untried[0] if untried else best, 0
        self.database = self._made[self._active]()
        for program in self._programs:
            self.database.add(program, iteration=program.iteration_found)
        self._scorer.reset_window(self._best)
