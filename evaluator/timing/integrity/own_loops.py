"""Check that our loop makes the timed calls.

Native code can reach the harness of its own process and replace our loop by its own. It then saves the Python around
each call: the harness's, which an empty call needs, too, and that of its own `forward`. A kernel of some microseconds
then seems twice as fast as for any caller. No output is wrong, and single calls are as fast in such a loop. But a call
through our loop is in the interpreter for at least as long as an empty call. So the process is sampled from outside, at
random moments of rounds like the timed ones, and a child that is there for less than half as long was not called by us.
The cost of a round of one call, asking and answering, is not counted.

A child that spends that time in the interpreter anyway can gain no more than the Python of its own `forward`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.integrity.suspects import harness_suspects
from evaluator.timing.protocol import IntegrityMargins
from evaluator.timing.rounds import Rounds
from evaluator.types import Verdict
from evaluator.units import time_text

_FEWEST_SAMPLES, _MOST_SAMPLES = 30, 400  # of a child
_PATIENCE = 5  # times as long, at most, while there are fewer samples than the fewest
_SHORT_ROUNDS = 4  # of one call; the shortest counts


@dataclass(slots=True)
class _Samples:
    """Samples of a child in some rounds: the time that it ran, all samples, and those in the interpreter."""

    rounds: int = 0
    ran_us: float = 0.0
    samples: int = 0
    interpreted: int = 0

    def add(self, done: Round) -> None:
        self.rounds += 1
        self.ran_us += done.ran_us
        self.samples += done.diagnostics.get("looks", 0)
        self.interpreted += done.diagnostics.get("interpreted", 0)

    @property
    def share(self) -> float:
        return self.interpreted / max(1, self.samples)

    @property
    def round_us(self) -> float:
        return self.ran_us / max(1, self.rounds)

    def least_share(self, null: _Samples, short_us: float, of_empty_call: float) -> float:
        """Return the least share of its time that this child has to be in the interpreter, given the null child's; a
        round of one call takes `short_us` of that. 0 where it is not known: the kernel may not tell how long a process
        ran."""
        if not self.round_us or null.samples < _FEWEST_SAMPLES:
            return 0.0
        calls_us = max(0.0, null.round_us - short_us)
        return min(1.0, null.share * (short_us + of_empty_call * calls_us) / self.round_us)

    def chance(self, share: float) -> float:
        """Return the probability of so few samples in the interpreter, if it is there for that share of its time."""
        if self.share >= share:
            return 1.0
        rest = 1.0 - share
        terms = (
            math.comb(self.samples, k) * share**k * rest ** (self.samples - k) for k in range(self.interpreted + 1)
        )
        return math.fsum(terms)


class OwnLoops:
    """Rejects a suspect that is hardly ever in the interpreter during timed calls."""

    name = "own_loops"
    longest_s = 10.0  # for sampling one child

    def run(self, session: TimedSession) -> None:
        names = harness_suspects(session)
        suspects = [contender for contender in session.contenders if contender.name in names]
        if suspects:
            _sample(session.rounds, suspects, session.plans[-1], session.protocol.integrity)


def _late_s(found: _Samples, null: _Samples, margins: IntegrityMargins) -> float:
    """Return how much longer to sample where programs that share the judge's core left it too few samples."""
    few = min(found.samples, null.samples) < _FEWEST_SAMPLES
    return (_PATIENCE - 1) * margins.interpreter_s if few else 0.0


def _sample(rounds: Rounds, suspects: Sequence[Contender], plan: RoundPlan, margins: IntegrityMargins) -> None:
    null, once = _Samples(), replace(plan, calls=1)
    short_us = min(rounds.run_null(rounds.repeated_inputs(1), once).ran_us for _ in range(_SHORT_ROUNDS))
    for contender in suspects:
        found, least, end = _Samples(), 0.0, time.monotonic() + margins.interpreter_s
        while found.samples < _MOST_SAMPLES and time.monotonic() < end + _late_s(found, null, margins):
            null.add(rounds.run_null(rounds.repeated_inputs(plan.calls), plan, watch=True))
            found.add(rounds.run(contender, rounds.new_inputs(plan.calls), plan, watch=True))
            least = found.least_share(null, short_us, margins.interpreter_share)
            if found.samples >= _FEWEST_SAMPLES and (
                found.share >= least > 0 or found.chance(least) < margins.interpreter_error
            ):
                break
        if found.chance(least) < margins.interpreter_error:
            raise Rejection(
                Verdict.REWARD_HACK,
                STAGE,
                "a loop of its own makes the timed calls: it is hardly ever in the interpreter, where an empty call"
                f" spends {time_text(null.share * null.round_us / plan.executions)}",
                check="own_loop",
                looks=found.samples,
                in_interpreter=found.interpreted,
                least_share=round(least, 3),
            )
