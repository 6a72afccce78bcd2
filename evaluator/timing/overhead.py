"""The cost of a round beside its calls, measured on the null child, and how much of it is taken off."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from evaluator.devices.base import Round
from evaluator.timing.contender import Contender
from evaluator.timing.protocol import TimingProtocol

_MOST_OFF = 0.98  # of a round: a time is positive


DEVICE_CLOCK = "device_clock"
"""In diagnostics: whether the device's own clock gave the times."""


@dataclass(frozen=True, slots=True)
class ClockRule:
    """One rule for the times of all contenders of a session.

    At most `share` of a round's wall time is taken off as overhead. With `slack` the device's own clock gives
    the length of a round, and the wall clock a lower bound: what a round costs beside its device time is at most
    `slack` times what it costs with the null child. Without it the wall clock alone counts.
    """

    share: float
    slack: float = 0.0

    @classmethod
    def of(cls, contenders: Collection[Contender], protocol: TimingProtocol) -> ClockRule:
        """Return the rule for a session. Where no suspect can reach the harness, none can speed it up or change
        its reports."""
        if any(contender.suspect and not contender.plain for contender in contenders):
            return cls(protocol.overhead_share)
        return cls(protocol.plain_overhead_share, protocol.device_slack)


@dataclass(slots=True)
class Overhead:
    """The least that rounds of the null child took, by executions a round.

    `wall_us` is the whole round. `idle_us` is the part in which that child did not run: stopping it, waking it, asking
    it. That part is the judge's own; no child can save it, so all of it is taken off. It is 0 on a device that does
    not tell how long a child ran. `device_us` is the part that the device's own clock counted, where there is one.
    """

    wall_us: dict[int, float] = field(default_factory=dict)
    idle_us: dict[int, float] = field(default_factory=dict)
    device_us: dict[int, float] = field(default_factory=dict)

    def note(self, done: Round, executions: int) -> None:
        """Count one round of the null child."""
        idle_us = done.wall_us - done.ran_us - done.waited_us if done.ran_us else 0.0
        _keep_least(self.wall_us, executions, done.wall_us)
        _keep_least(self.idle_us, executions, max(0.0, idle_us))
        if done.device_us is not None:
            _keep_least(self.device_us, executions, done.device_us)

    def harness_us(self, executions: int) -> float:
        """Return the part that ran in the child, where a hostile one could save it."""
        return self.wall_us[executions] - min(self.idle_us[executions], self.wall_us[executions])

    def call_us(self, done: Round, rule: ClockRule) -> float:
        """Return the time of a call of a round, less the overhead of rounds of its size."""
        net_us = self._net_us(done, rule.share)
        own_us = self.device_us.get(done.plan.executions)
        if rule.slack and done.device_us is not None and own_us is not None:
            beside_us = self.wall_us[done.plan.executions] - own_us
            net_us = max(done.device_us - own_us, net_us - rule.slack * beside_us)
        return max(net_us, (1 - _MOST_OFF) * done.wall_us) / done.plan.executions

    def _net_us(self, done: Round, most_share: float) -> float:
        """Return a round's wall time less its overhead. Of the part that a child can save at most `most_share` of the
        round is taken off."""
        executions = done.plan.executions
        harness_us = self.harness_us(executions)
        rest_us = done.wall_us - (self.wall_us[executions] - harness_us)
        return rest_us - min(harness_us, most_share * rest_us)

    def empty_call_us(self, executions: int, most_share: float) -> float:
        """Return the time that `call_us` gives for the null child itself, on the wall clock."""
        return (1 - most_share) * self.harness_us(executions) / executions


def _keep_least(known: dict[int, float], executions: int, us: float) -> None:
    known[executions] = min(known.get(executions, math.inf), us)
