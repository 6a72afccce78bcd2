"""Check that no call takes less than one of the null child, which does nothing in our own harness."""

from __future__ import annotations

from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.integrity.suspects import able_to_reach_harness


class EmptyCalls:
    """Raises the times of suspects that could reach the harness to those of the null child."""

    name = "empty_calls"

    def run(self, session: TimedSession) -> None:
        overhead_us, least_share = session.rounds.overhead_us, 1 - session.protocol.overhead_share
        for contender in able_to_reach_harness(session):
            contender.raise_to(self.name, {n: least_share * us / n for n, us in overhead_us.items()})
