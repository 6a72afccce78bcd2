"""Which arm next: a cost-aware upper confidence bound over (Proposer, model, Operator, prompt variant).

UCB1 (Auer, Cesa-Bianchi, Fischer 2002) on reward per ask, the reward divided by a root of the arm's relative cost, so
that ten times the price must bring about three times the gain. What is in flight counts as asked and not yet rewarded,
which spreads concurrent asks over the arms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from evolution.state import ArmStats

USD_S = 600.0
"""A dollar weighs as much as ten minutes of a device."""
PROPOSE_WEIGHT = 0.1
EXPLORATION = 1.0
PASS_REWARD = 0.05
CROWN_REWARD = 0.2
MOST = 2.0


def judged_reward(speedup: float | None, best_before: float | None) -> float:
    """Reward of a Candidate that passed: a little for passing, and its log gain over the Run's best (first: over 1)."""
    if speedup is None:
        return PASS_REWARD
    return PASS_REWARD + min(MOST, max(0.0, math.log(speedup / (best_before or 1.0))))


def confirmed_reward(speedup: float, champion_before: float | None) -> float:
    """Reward of a promotion: the log gain that was confirmed, over the Champion before (none: over the Baseline)."""
    return CROWN_REWARD + min(MOST, max(0.0, math.log(speedup / (champion_before or 1.0))))


def cost_s(stats: ArmStats) -> float:
    """What an ask of this arm costs, as device-seconds."""
    spent = stats.device_s + PROPOSE_WEIGHT * stats.propose_s + USD_S * stats.usd
    return spent / max(1, stats.settled)


def choose(arms: Sequence[ArmStats], asked: dict[int, int], rng: Random) -> int:
    """The index of the arm to ask. `asked` adds asks per index that `arms` does not know of yet."""
    seen = [cost_s(arm) for arm in arms if arm.settled]
    typical = max(1e-6, sum(seen) / len(seen)) if seen else 1.0
    total = sum(arm.asked for arm in arms) + sum(asked.values())

    def score(index: int) -> float:
        arm = arms[index]
        n = arm.asked + asked.get(index, 0)
        price = max(0.1, cost_s(arm) / typical) if arm.settled else 1.0
        gain = arm.reward / max(1, n) / math.sqrt(price)
        return gain + EXPLORATION * math.sqrt(math.log(total + 2) / (n + 1)) + 1e-3 * rng.random()

    return max(range(len(arms)), key=score)
