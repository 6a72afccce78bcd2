"""A two-level bandit: choose an Operator by a cost-aware upper confidence bound, then a model for it.

The Operator: UCB1 (Auer, Cesa-Bianchi, Fischer 2002) on the reward per call, divided by the square root of the
relative cost, so ten times the price must bring about three times the gain. The calls of all models for an Operator
count together. A call in flight counts as asked and not yet rewarded, which spreads concurrent calls.

The model: Thompson sampling (Thompson 1933) of a model's share of useful calls, over all Operators, divided by the cost
of a call. A reward counts as a multiple of the mean reward of a passed kernel. A separate arm for each (model,
Operator) learns nothing within a Run: each of ten or twenty arms gets a few calls, and most calls bring nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from evolution.arms import is_free
from evolution.state import ArmStats
from evolution.types import Operator

USD_S = 600.0
"""A dollar costs as much as ten minutes of a device."""
PROPOSE_WEIGHT = 0.1
EXPLORATION = 1.0
PASS_REWARD = 0.05
PROMOTION_REWARD = 0.2
MAX_GAIN = 2.0


def judged_reward(speedup: float | None, best_before: float | None) -> float:
    """Return the reward of a passed Candidate: a constant, plus its log gain over the Run's best (or over 1)."""
    if speedup is None:
        return PASS_REWARD
    return PASS_REWARD + min(MAX_GAIN, max(0.0, math.log(speedup / (best_before or 1.0))))


def confirmed_reward(speedup: float, champion_before: float | None) -> float:
    """Return the reward of a promotion: the confirmed log gain over the last Champion (none: over the Baseline)."""
    return PROMOTION_REWARD + min(MAX_GAIN, max(0.0, math.log(speedup / (champion_before or 1.0))))


def spent_s(stats: ArmStats) -> float:
    """Return the total cost of an arm in device-seconds."""
    return stats.device_s + PROPOSE_WEIGHT * stats.propose_s + USD_S * stats.usd


def cost_s(stats: ArmStats) -> float:
    """Return the mean cost of a call of an arm in device-seconds."""
    return spent_s(stats) / max(1, stats.settled)


def choose(arms: Sequence[ArmStats], asked: dict[int, int], rng: Random) -> int:
    """Return the index of the arm to ask. `asked` adds calls by index that `arms` does not include yet."""
    pools: dict[tuple[str, str, Operator, str], list[int]] = {}
    for index, stats in enumerate(arms):
        arm = stats.arm
        who = (arm.proposer, arm.model) if is_free(arm) else ("", "")
        pools.setdefault((*who, arm.operator, arm.variant), []).append(index)
    members = list(pools.values())
    pooled = [_pooled([arms[i] for i in indices]) for indices in members]
    chosen = members[_choose_operator(pooled, [sum(asked.get(i, 0) for i in indices) for indices in members], rng)]
    return chosen[0] if len(chosen) == 1 else choose_model(arms, chosen, asked, rng)


def _choose_operator(arms: Sequence[ArmStats], asked: Sequence[int], rng: Random) -> int:
    seen = [cost_s(arm) for arm in arms if arm.settled]
    typical = max(1e-6, sum(seen) / len(seen)) if seen else 1.0
    total = sum(arm.asked for arm in arms) + sum(asked)

    def score(index: int) -> float:
        arm = arms[index]
        n = arm.asked + asked[index]
        price = max(0.1, cost_s(arm) / typical) if arm.settled else 1.0
        gain = arm.reward / max(1, n) / math.sqrt(price)
        return gain + EXPLORATION * math.sqrt(math.log(total + 2) / (n + 1)) + 1e-3 * rng.random()

    return max(range(len(arms)), key=score)


def choose_model(arms: Sequence[ArmStats], chosen: Sequence[int], asked: dict[int, int], rng: Random) -> int:
    """Return the index of the model with the highest sampled reward for its cost, of `chosen`: one index per model.

    A model that was never asked comes first. A call costs at least as much as one judgement: even a cheap call takes
    the place of a better one.
    """
    models = [arm for arm in arms if not is_free(arm.arm)]
    usual = max(1e-9, sum(arm.reward for arm in models) / max(1, sum(arm.passed for arm in models)))
    judged = sum(arm.judged for arm in arms)
    least_s = max(1e-6, sum(arm.device_s for arm in arms) / judged) if judged else 1.0

    def worth(index: int) -> float:
        one = arms[index].arm
        own = [i for i, arm in enumerate(arms) if (arm.arm.proposer, arm.arm.model) == (one.proposer, one.model)]
        model = _pooled([arms[i] for i in own])
        if model.asked + sum(asked.get(i, 0) for i in own) == 0:
            return math.inf
        known = model.settled - model.candidates + model.judged
        useful = min(known, model.reward / usual)
        return rng.betavariate(1 + useful, 1 + known - useful) / max(least_s, cost_s(model))

    return max(rng.sample(chosen, len(chosen)), key=worth)


def _pooled(arms: Sequence[ArmStats]) -> ArmStats:
    """Return the sums of several arms' counters, of those used here."""
    return replace(
        arms[0],
        asked=sum(arm.asked for arm in arms),
        settled=sum(arm.settled for arm in arms),
        candidates=sum(arm.candidates for arm in arms),
        judged=sum(arm.judged for arm in arms),
        passed=sum(arm.passed for arm in arms),
        reward=sum(arm.reward for arm in arms),
        usd=sum(arm.usd for arm in arms),
        propose_s=sum(arm.propose_s for arm in arms),
        device_s=sum(arm.device_s for arm in arms),
    )
