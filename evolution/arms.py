"""The arms of a Run: each Proposer with each of its Operators, and their availability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evolution.state import ArmStats, SearchState
from evolution.types import SLOTS, Arm, Fault, Operator

SEED = Arm(proposer="seed", operator=Operator.CREATE)
TUNER = Arm(proposer="tuner", operator=Operator.TUNE)
DOWN_AFTER = 3
"""An arm whose endpoint failed this many times in a row is not asked again in this Run."""

STOP_AFTER = 2
"""An arm whose answers were of no use this many times in a row, for one cause, is not asked again in this Run."""
MOST_REPEATED = 4
"""A model is not asked again once the rows of repetitions of its arms are so long together."""

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


def way_of(arm: Arm) -> str:
    """Return how a model writes for an arm: the slots of a block, edits of a parent, or a file; "" if none is asked."""
    if is_free(arm):
        return ""
    return SLOTS if arm.variant == SLOTS else "edits" if arm.operator is Operator.DIFF else "file"


def arms_of(proposers: tuple[str, ...], *, slots: bool = False) -> tuple[Arm, ...]:
    """Return every arm of these Proposers. Synthesiser, replay and external ones enumerate; the rest are models.

    The inner search over Tunables needs no model call, so every Run has it. `slots`: models may fill those of a block.
    """
    arms: list[Arm] = []
    for name in dict.fromkeys(proposers):
        enumerates = name.split(":", 1)[0] in _ENUMERATING
        operators = (Operator.CREATE,) if enumerates else _MODEL_OPERATORS
        arms += [Arm(proposer=name, operator=operator) for operator in operators]
        arms += [Arm(proposer=name, operator=Operator.CREATE, variant=SLOTS)] if slots and not enumerates else []
    return (*arms, TUNER) if arms else ()


def stats_of(state: SearchState) -> list[ArmStats]:
    """Return the counters of every arm of the Run except the seed arm; zeros for one that was never asked.

    All arms of a model that was stopped have its row of faults.
    """
    known = {stats.arm: stats for stats in state.arms}
    stopped = stopped_models(state)
    arms = [known.get(arm, ArmStats(arm=arm)) for arm in arms_of(state.config.proposers, slots=state.slots)]
    return [replace(one, faults_in_row=STOP_AFTER) if one.arm.proposer in stopped else one for one in arms]


def stopped_models(state: SearchState) -> dict[str, Fault]:
    """Return the models that are not asked again, with the fault in their last answers."""
    by_model: dict[str, list[ArmStats]] = {}
    for stats in state.arms:
        by_model.setdefault(stats.arm.proposer, []).append(stats)
    found = {name: _stopping_fault(arms) for name, arms in by_model.items()}
    return {name: fault for name, fault in found.items() if fault is not None}


def _stopping_fault(arms: Sequence[ArmStats]) -> Fault | None:
    """Return the fault that stops a whole model: its own, any before its first Candidate, or too many repetitions."""
    proven = any(arm.candidates for arm in arms)
    for arm in arms:
        if arm.fault is not None and arm.faults_in_row >= STOP_AFTER and (arm.fault.of_model or not proven):
            return arm.fault
    repeated = sum(arm.faults_in_row for arm in arms if arm.fault is Fault.DUPLICATE)
    return Fault.DUPLICATE if repeated >= MOST_REPEATED else None


def is_up(stats: ArmStats) -> bool:
    """Return True if an arm is within the budget, not exhausted, and did not fail or disappoint too often in a row."""
    return (
        not (stats.exhausted or stats.broke) and stats.errors_in_row < DOWN_AFTER and stats.faults_in_row < STOP_AFTER
    )


def seeds_asked(state: SearchState) -> int:
    """Return the number of seeds that were already proposed."""
    return next((stats.asked for stats in state.arms if stats.arm == SEED), 0)
