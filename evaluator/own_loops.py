"""Is it our loop that makes the timed calls?

Native code can reach the harness of its own process, put a loop of its own in the place of ours, and save what the
Python around each call takes: that of the harness, which a call of nothing needs, too, and that of its own `forward`. A
kernel of some microseconds then seems twice as fast as it is for anybody who calls it. No output is wrong, and when
calls come one at a time such a loop is as quick. But a call that goes through our loop is in the interpreter for at
least as long as a call of nothing is, so its process is looked at from outside, at random moments of rounds like the
timed ones: who is there for less than half as long has not been called by us.

Whoever spends that time in the interpreter all the same has no more to gain than what his own `forward` spends there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluator.contender import Contender
from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.rounds import STAGE, Rounds
from evaluator.types import Verdict

_ENOUGH, _MOST, _MOST_S = 60, 400, 2.0  # looks at a child, and how long they may take
_LEAST_SHARE = 0.5  # of the time that a call of nothing is in the interpreter
_CERTAIN = 1e-6
_WALLS = 3  # rounds of which the shortest tells how long one lasts

Run = Callable[[bool], Round]  # a round of a child, watched or not


@dataclass(slots=True)
class _Seen:
    """How often a child was looked at, and how often it was in the interpreter then."""

    looks: int = 0
    interpreted: int = 0

    def add(self, done: Round) -> None:
        self.looks += done.diagnostics.get("looks", 0)
        self.interpreted += done.diagnostics.get("interpreted", 0)

    @property
    def share(self) -> float:
        return self.interpreted / max(1, self.looks)


def refuse(rounds: Rounds, suspects: Sequence[Contender], plan: RoundPlan) -> None:
    """Look at suspects in rounds like `plan`. Raises Rejection, ComparatorFailed."""
    null = _Seen()
    _look(lambda watch: rounds.run_null(rounds.repeated(plan.calls), plan, watch=watch), null, 0.0)
    null_us = null.share * rounds.overhead_us[plan.executions]
    for contender in suspects:

        def run(watch: bool, contender: Contender = contender) -> Round:
            return rounds.run(contender, rounds.fresh(plan.calls), plan, watch=watch)

        seen, wall_us = _Seen(), min(run(False).wall_us for _ in range(_WALLS))
        least = min(1.0, _LEAST_SHARE * null_us / wall_us)
        _look(run, seen, least)
        if _chance(seen, least) < _CERTAIN:
            raise Rejection(
                Verdict.REWARD_HACK,
                STAGE,
                "a loop of its own makes the timed calls: it is hardly ever in the interpreter, where a call of nothing"
                f" spends {null_us / plan.executions:.1f} us",
                check="own_loop",
                looks=seen.looks,
                in_interpreter=seen.interpreted,
                least_share=round(least, 3),
            )


def _look(run: Run, seen: _Seen, least: float) -> None:
    """Until it is clear whether the child is in the interpreter for at least a share of the time, or time is up."""
    end = time.monotonic() + _MOST_S
    while seen.looks < _MOST and time.monotonic() < end:
        seen.add(run(True))
        if seen.looks >= _ENOUGH and (seen.share >= least or _chance(seen, least) < _CERTAIN):
            break


def _chance(seen: _Seen, share: float) -> float:
    """Of being seen in the interpreter as rarely, or more rarely, if it is there for that share of the time."""
    if seen.share >= share:
        return 1.0
    rest = 1.0 - share
    terms = (math.comb(seen.looks, k) * share**k * rest ** (seen.looks - k) for k in range(seen.interpreted + 1))
    return math.fsum(terms)
