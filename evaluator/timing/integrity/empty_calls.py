"""Check that no call takes less than one of the null child, which does nothing in our own harness."""

from __future__ import annotations

from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.integrity.suspects import able_to_reach_harness


class EmptyCalls:
    """Raises the times of suspects that could reach the harness to those of the null child."""

    name = "empty_calls"

    def run(self, session: TimedSession) -> None:
        overhead, share = session.rounds.overhead, session.protocol.overhead_share
        for contender in able_to_reach_harness(session):
            contender.raise_to(self.name, {n: overhead.empty_call_us(n, share) for n in overhead.wall_us})
