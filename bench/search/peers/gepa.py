"""GEPA's `optimize_anything` with its default settings: reflective mutation of a candidate of the Pareto front.

There is one task, so the front holds the best candidates. A kernel's measurement is kept: GEPA looks at a parent again
before each child. Where the tuner is on, every other child is its choice.
"""

from __future__ import annotations

import logging
from typing import Any

from bench.search.landscape import Landscape, Meter
from bench.search.peers.population import Population


class _Quiet:
    def log(self, message: str) -> None:
        """Say nothing."""


def gepa(land: Landscape, seed: int, most: int, least: int, tuner: bool) -> Meter:
    """Run it until the goal."""
    from gepa.optimize_anything import (  # noqa: PLC0415  optional
        EngineConfig,
        GEPAConfig,
        ReflectionConfig,
        TrackingConfig,
        optimize_anything,
    )

    logging.disable(logging.CRITICAL)
    found = Population(land, "gepa", seed, tuner)
    measured: dict[str, float] = {}
    asked = 0

    def evaluate(candidate: str) -> tuple[float, dict[str, Any]]:
        if candidate not in measured:
            measured[candidate] = found.measure(found.kernels[candidate])
        return measured[candidate], {"score": measured[candidate]}

    def propose(candidate: dict[str, str], _dataset: object, components: list[str]) -> dict[str, str]:
        nonlocal asked
        asked += 1
        [name] = components
        child = (found.choose() if asked % 2 == 0 else None) or found.child(found.kernels[candidate[name]])
        code = found.code(child)
        if code in measured:
            found.meter.propose()  # known, so it is not measured again
        return {name: code}

    optimize_anything(
        seed_candidate=found.code(found.proposer.propose(None)),
        evaluator=evaluate,
        config=GEPAConfig(
            engine=EngineConfig(seed=seed, parallel=False, max_candidate_proposals=50 * most),
            reflection=ReflectionConfig(reflection_lm=None, custom_candidate_proposer=propose),
            tracking=TrackingConfig(logger=_Quiet()),
            stop_callbacks=[lambda _state: found.meter.over(most, least)],
        ),
    )
    return found.meter
