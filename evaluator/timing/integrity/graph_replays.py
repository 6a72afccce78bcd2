"""Check that a captured graph does the same work in every replay.

Calls are chained within a replay, and each replay gets other inputs than the one before. But where inputs cannot be
chained, all replays are alike, and a child may replay less often than it was told: its first replay then takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from evaluator.devices.base import RoundPlan
from evaluator.errors import Rejection
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.protocol import IntegrityMargins
from evaluator.timing.rounds import Rounds
from evaluator.types import Verdict

_ROUNDS, _MOST_ROUNDS = 2, 8  # more than two only under suspicion: an honest kernel needs one good round
_CLEAR = 0.3  # share of the allowed excess
_CALLS = 4  # times the calls of a usual round, so that a single replay stands out from noise
_BYTES = 2 << 30
_LONG_US = 10_000.0  # noise is negligible in a round of this length
# The device's own cost of a first replay, some milliseconds, does not show in the rounds of comparators that are so
# many times slower. Skipping such a comparator's work would still exceed the allowance: its rounds last `_LONG_US`.
_SLOWER, _HIDDEN_US = 4.0, 3000.0


class GraphReplays:
    """Rejects a suspect if its first replays take longer, twice: the device may have become busy since it was timed."""

    name = "graph_replays"

    def run(self, session: TimedSession) -> None:
        rounds, contenders, plan = session.rounds, session.contenders, session.plans[0]
        margins = session.protocol.integrity
        if skipped_work(rounds, contenders, plan, margins, racing=session.racing) is None:
            return
        session.time_again()
        found = skipped_work(rounds, contenders, plan, margins, racing=False)
        if found is not None:
            raise found


def skipped_work(
    rounds: Rounds, contenders: Sequence[Contender], plan: RoundPlan, margins: IntegrityMargins, *, racing: bool
) -> Rejection | None:
    """Return the Rejection of a Candidate if its first replays take longer than later ones of `plan`, else None.

    Comparators are timed along with it, so the device's own cost of short rounds is taken off. Racing stops early where
    nothing is to be seen.
    """
    if plan.replays == 1:
        return None
    slowest_us = max(contender.official_us() for contender in contenders)
    once = replace(plan, calls=rounds.drawable_calls(_calls(plan.calls, slowest_us, rounds.input_bytes)), replays=1)
    known, excess = rounds.repeated_inputs(once.calls), _Excess(contenders, once.calls, margins)
    for contender in contenders:
        rounds.run(contender, known, once)  # prepares it
    for number in range(1, _MOST_ROUNDS + 1):
        # Usual values: a histogram's time depends on values, and other rounds would not be comparable.
        calls = rounds.drawn_inputs(once.calls)
        # The first contender after judge work runs slower: that must not always be the Candidate.
        for contender in contenders if number % 2 else contenders[::-1]:
            excess.add(contender, rounds.run(contender, calls, once).wall_us)
        fine = excess.share() < _CLEAR if number < _ROUNDS else excess.share() <= 1
        if fine and (racing or number >= _ROUNDS):
            return None
    return excess.rejection()


def _calls(usual: int, slowest_us: float, input_bytes: int) -> int:
    """Return how many calls to time: enough to stand out from noise, and no more. A call that launches thousands of
    kernels takes seconds to capture many times, and few such calls are needed."""
    return max(usual, min(_CALLS * usual, _BYTES // max(1, input_bytes), math.ceil(_LONG_US / max(1e-3, slowest_us))))


class _Excess:
    """Measures by how much the first replays of `calls` calls are slower than later ones."""

    def __init__(self, contenders: Sequence[Contender], calls: int, margins: IntegrityMargins) -> None:
        self._contenders, self._calls, self._margins = contenders, calls, margins
        self._least_us: dict[str, float] = {}

    def add(self, contender: Contender, wall_us: float) -> None:
        """Add a round. Every first replay does the work that later ones skip, so even the fastest round shows it, and a
        disturbed round does not count."""
        excess_us = wall_us - self._calls * contender.official_us()
        self._least_us[contender.name] = min(self._least_us.get(contender.name, math.inf), excess_us)

    def over_us(self, contender: Contender) -> float:
        """Return the excess beyond that of comparators."""
        common_us = max([0.0, *(self._least_us[c.name] for c in self._contenders if not c.suspect)])
        return self._least_us[contender.name] - common_us

    def share(self) -> float:
        """Return the largest excess as a share of the allowed one."""
        suspects = [c for c in self._contenders if c.suspect]
        return max([0.0, *(self.over_us(c) / self._allowed_us(c) for c in suspects)])

    def _allowed_us(self, contender: Contender) -> float:
        own_us = contender.official_us()
        others = [c.official_us() for c in self._contenders if not c.suspect]
        least_us = _HIDDEN_US if others and min(others) > _SLOWER * own_us else self._margins.first_replay_us
        return max(least_us, self._margins.first_replay_share * self._calls * own_us)

    def rejection(self) -> Rejection:
        worst = max(self.over_us(c) for c in self._contenders if c.suspect)
        return Rejection(
            Verdict.REWARD_HACK,
            STAGE,
            "the first replay of a graph takes longer than later ones on the same inputs: later replays skip work",
            check="first_replay",
            excess_us=round(worst, 1),
            calls=self._calls,
        )
