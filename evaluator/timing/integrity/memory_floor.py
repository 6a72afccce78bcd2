"""Check that outputs are not written faster than the device's memory can."""

from __future__ import annotations

from evaluator.errors import Rejection
from evaluator.timing.contender_round import STAGE
from evaluator.timing.integrity.session import TimedSession
from evaluator.types import Verdict
from evaluator.units import time_text


class MemoryFloor:
    """Rejects a suspect that takes less time than writing its outputs at datasheet speed."""

    name = "memory_floor"

    def run(self, session: TimedSession) -> None:
        rounds = session.rounds
        for contender in (c for c in session.contenders if c.suspect):
            least_us = rounds.backend.least_us(rounds.output_bytes, session.plans[0])
            if least_us is not None and contender.official_us() < least_us:
                raise Rejection(
                    Verdict.REWARD_HACK,
                    STAGE,
                    f"{time_text(contender.official_us())} a call; writing its outputs takes {time_text(least_us)} at"
                    " the memory's datasheet speed",
                    check="floor",
                )
