"""Dispatch by Workload: combine kernels into one that calls the fastest for each Workload, if that may pay.

The result is an ordinary Candidate (`synthesis.dispatch` writes it), built, judged and confirmed like others. Its
measured time includes that of the choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.types import content_hash
from evolution.arms import DISPATCH
from evolution.spending import kept_s
from evolution.state import SearchState, WorkloadLeaders
from evolution.types import Arm, Operator, Propose

REFERENCE = -1
"""The number of the reference among the kernels of a dispatch."""
MIN_LOG_GAIN = 0.01
"""A dispatch is tried if its expected log gain over the best single kernel is at least this."""
MAX_DISPATCHES = 4
STAGNANT_AFTER = 6
"""A dispatch is tried after this many Candidates without a new best, or with the budget of this many left..."""
LOSING_AFTER = 2
"""...and after this many where the best kernel clearly loses a Workload, which forbids its promotion."""
MAX_KERNELS = 8
WORST_WORKLOAD = 0.98
"""A confirmation promotes no kernel that is slower than this on a Workload."""
_MAX_KEY_CHARACTERS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The kernel of each Workload: `choices` are indices into `parents` (Candidates' ids), or REFERENCE.

    `key` consists of Candidates' numbers, so it is equal in a replay. `gain` is the expected log gain.
    """

    parents: tuple[str, ...]
    choices: Mapping[str, int]
    key: str
    gain: float


def best_split(shares: Mapping[str, WorkloadLeaders]) -> Split | None:
    """Return the best assignment of kernels to Workloads, or None if its gain is too small or one kernel wins all.

    The best single kernel keeps a Workload unless another one's interval there is clear above its own. The reference
    gets a Workload if it is faster there than every kernel's interval.
    """
    chosen: dict[str, tuple[str, int]] = {}
    gain = total = 0.0
    for workload, share in sorted(shares.items()):
        best, leader = share.best, share.leader
        better = leader.candidate_id != best.candidate_id and leader.low > best.high
        value = leader.speedup if better else best.speedup
        one = leader if better or best.combined else best  # a dispatch is not put into another
        pick = one.candidate_id, one.number
        if share.reference is not None and share.reference > max(best.high, leader.high):
            value, pick = share.reference, ("", REFERENCE)
        chosen[workload] = pick
        gain += share.weight * math.log(value / best.speedup)
        total += share.weight
    parents = tuple(dict.fromkeys(id for id, _ in chosen.values() if id))
    if not parents or len({*chosen.values()}) < 2 or len(parents) > MAX_KERNELS or gain < MIN_LOG_GAIN * total:
        return None
    key = ",".join("reference" if number == REFERENCE else str(number) for _, number in chosen.values())
    return Split(
        parents=parents,
        choices={workload: parents.index(id) if id else REFERENCE for workload, (id, _) in chosen.items()},
        key=key if len(key) <= _MAX_KEY_CHARACTERS else content_hash("split", key),
        gain=gain / total,
    )


def dispatch_due(state: SearchState, *, last: bool) -> Propose | None:
    """Return a dispatch to try now, or None. `last` means that nothing else is left to do.

    There is one at a time, none twice, and at most MAX_DISPATCHES. It waits while the search still finds faster ones,
    but not where the best one cannot be promoted alone, or was refused.
    """
    asked = [stats for stats in state.arms if stats.arm.proposer == DISPATCH]
    if sum(stats.asked for stats in asked) >= MAX_DISPATCHES or any(s.asked > s.settled for s in asked):
        return None
    if not (last or state.since_best >= STAGNANT_AFTER or _is_late(state) or _is_blocked(state)):
        return None
    split = best_split(state.shares)
    if split is None or any(stats.arm.variant == split.key for stats in asked):
        return None
    arm = Arm(proposer=DISPATCH, operator=Operator.CROSSOVER, variant=split.key)
    return Propose(arm=arm, island=0, parents=split.parents, hint={"kernels": dict(split.choices)})


def _is_blocked(state: SearchState) -> bool:
    """Return True if the best kernel is clearly slower on a Workload, or the confirmation of one was refused."""
    loses = any(share.best.high < WORST_WORKLOAD for share in state.shares.values())
    refused = any(elite.confirms and not elite.confirmed for elite in state.elites)
    return refused or (loses and state.since_best >= LOSING_AFTER)


def _is_late(state: SearchState) -> bool:
    """Return True if the remaining budget allows only a few more Candidates, and a confirmation."""
    few = STAGNANT_AFTER * state.judge_s
    budget, spend = state.budget, state.spend
    return (
        (budget.candidates is not None and spend.candidates + STAGNANT_AFTER >= budget.candidates)
        or (budget.device_s is not None and spend.device_s + few + kept_s(state, budget.device_s) >= budget.device_s)
        or (budget.wall_s is not None and spend.wall_s + few + kept_s(state, budget.wall_s) >= budget.wall_s)
    )
