"""The cost of a round beside its calls, measured on the null child, and how much of it is taken off."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from evaluator.devices.base import Round
from evaluator.timing.contender import Contender
from evaluator.timing.protocol import TimingProtocol

_MOST_OFF = 0.98  # of a round: a time is positive


@dataclass(slots=True)
class Overhead:
    """The least that rounds of the null child took, by executions a round.

    `wall_us` is the whole round. `idle_us` is the part in which that child did not run: stopping it, waking it, asking
    it. That part is the judge's own; no child can save it, so all of it is taken off. A device that does not tell how
    long a child ran has none.
    """

    wall_us: dict[int, float] = field(default_factory=dict)
    idle_us: dict[int, float] = field(default_factory=dict)

    def note(self, done: Round, executions: int) -> None:
        """Count one round of the null child."""
        idle_us = done.wall_us - done.ran_us - done.waited_us if done.ran_us else 0.0
        for known, us in ((self.wall_us, done.wall_us), (self.idle_us, max(0.0, idle_us))):
            known[executions] = min(known.get(executions, math.inf), us)

    def harness_us(self, executions: int) -> float:
        """Return the part that ran in the child, where a hostile one could save it."""
        return self.wall_us[executions] - min(self.idle_us[executions], self.wall_us[executions])

    def call_us(self, done: Round, most_share: float) -> float:
        """Return the time of a call of a round, less the overhead of rounds of its size. Of the part that a child can
        save at most `most_share` of the round is taken off."""
        executions = done.plan.executions
        harness_us = self.harness_us(executions)
        rest_us = done.wall_us - (self.wall_us[executions] - harness_us)
        net_us = rest_us - min(harness_us, most_share * rest_us)
        return max(net_us, (1 - _MOST_OFF) * done.wall_us) / executions

    def empty_call_us(self, executions: int, most_share: float) -> float:
        """Return what `call_us` gives for the null child itself."""
        return (1 - most_share) * self.harness_us(executions) / executions


def most_share(contenders: Collection[Contender], protocol: TimingProtocol) -> float:
    """Return the largest part of a round that is taken off: one number for all contenders of a session. Where no
    suspect can reach the harness nobody can speed it up, and all of it is taken off."""
    reachable = any(contender.suspect and not contender.plain for contender in contenders)
    return protocol.overhead_share if reachable else protocol.plain_overhead_share
