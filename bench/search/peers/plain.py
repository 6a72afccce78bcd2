"""Searches without a population of their own: improve anything, draw first drafts, draw from the recording."""

from __future__ import annotations

from collections.abc import Callable

from bench.search.landscape import Kernel, Landscape, Meter
from bench.search.peers.population import Population

CROSS = 0.2


def random_search(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Improve any kernel that passed, or cross any two, all equally likely."""
    found = Population(land, "random", seed, tuner)
    passed: list[Kernel] = []
    while not found.meter.over(most, least):
        parents = found.rng.sample(passed, min(len(passed), 1 + (found.rng.random() < CROSS)))
        child = found.proposer.propose(*parents) if parents else found.proposer.propose(None)
        found.measure(child)
        better = found.tune()
        passed += [kernel for kernel in (child, better and better[0]) if kernel and kernel.passed]
    return found.meter


def draw_any(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Draw any recorded kernel, all equally likely. No search can do that.

    It draws a kernel of many edits as easily as a first draft, and seldom a slip. It is reported with the others, since
    it is hard to beat.
    """
    found = Population(land, "random", seed, tuner)
    kernels = sorted(land.kernels.values(), key=lambda kernel: kernel.hash)
    return _measure_until_goal(found, most, least, lambda: found.rng.choice(kernels))


def best_of_n(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Ask the proposer from the reference alone, repeatedly."""
    found = Population(land, "best", seed, tuner)
    return _measure_until_goal(found, most, least, lambda: found.proposer.propose(None))


def _measure_until_goal(found: Population, most: int, least: int, draw: Callable[[], Kernel]) -> Meter:
    """Measure every drawn kernel until the goal. Only the tuner learns from it."""
    while not found.meter.over(most, least):
        found.measure(draw())
        found.tune()
    return found.meter
