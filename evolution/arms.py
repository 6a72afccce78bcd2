"""The arms of a Run: each Proposer with each of its Operators, and their availability."""

from __future__ import annotations

from evolution.state import ArmStats, SearchState
from evolution.types import Arm, Operator

SEED = Arm(proposer="seed", operator=Operator.CREATE)
TUNER = Arm(proposer="tuner", operator=Operator.TUNE)
DOWN_AFTER = 3
"""An arm whose endpoint failed this many times in a row is not asked again in this Run."""

DISPATCH = "dispatch"
"""Combines several judged kernels into one; the variant names them."""
EXTERNAL = "external"
"""Prefix of Candidates from external agents: `external:NAME`."""

ENUMERATORS = ("synthesiser",)
"""Proposers that enumerate Candidates and ask no model, by the names that a Run may give."""
_ENUMERATING = (*ENUMERATORS, "replay", EXTERNAL)
_MODEL_OPERATORS = (Operator.CREATE, Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR)


def is_free(arm: Arm) -> bool:
    """Return True if an arm never uses tokens or dollars."""
    return arm.proposer in (SEED.proposer, TUNER.proposer, DISPATCH) or arm.proposer.split(":", 1)[0] in _ENUMERATING


def arms_of(proposers: tuple[str, ...]) -> tuple[Arm, ...]:
    """Return every arm of these Proposers. Synthesiser, replay and external ones enumerate; the rest are models.

    The inner search over Tunables needs no model call, so every Run has it.
    """
    arms: list[Arm] = []
    for name in dict.fromkeys(proposers):
        enumerates = name.split(":", 1)[0] in _ENUMERATING
        operators = (Operator.CREATE,) if enumerates else _MODEL_OPERATORS
        arms += [Arm(proposer=name, operator=operator) for operator in operators]
    return (*arms, TUNER) if arms else ()


def stats_of(state: SearchState) -> list[ArmStats]:
    """Return the counters of every arm of the Run except the seed arm; zeros for one that was never asked."""
    known = {stats.arm: stats for stats in state.arms}
    return [known.get(arm, ArmStats(arm=arm)) for arm in arms_of(state.config.proposers)]


def is_up(stats: ArmStats) -> bool:
    """Return True if an arm is not exhausted, within the budget, and did not fail DOWN_AFTER times in a row."""
    return not (stats.exhausted or stats.broke) and stats.errors_in_row < DOWN_AFTER


def seeds_asked(state: SearchState) -> int:
    """Return the number of seeds that were already proposed."""
    return next((stats.asked for stats in state.arms if stats.arm == SEED), 0)
