"""Check that no call takes less than one of the null child, which does nothing in our own harness."""

from __future__ import annotations

from evaluator.timing.contender import MAX_OVERHEAD_SHARE
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.integrity.suspects import able_to_reach_harness


class EmptyCalls:
    """Raises the times of suspects that could reach the harness to those of the null child."""

    name = "empty_calls"

    def run(self, session: TimedSession) -> None:
        overhead_us = session.rounds.overhead_us
        for contender in able_to_reach_harness(session):
            contender.raise_to(self.name, {n: (1 - MAX_OVERHEAD_SHARE) * us / n for n, us in overhead_us.items()})
