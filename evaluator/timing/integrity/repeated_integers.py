"""Check that a kernel is as fast on integers that it has not seen.

Where drawing integers takes long, several calls of a round share one draw, with two integers exchanged. A kernel that
caches answers row by row, which is fair as long as they are right, finds nearly every row again there; its callers
never will. So a suspect that seems faster than the fastest comparator then gets some more rounds, of fewer calls, each
with a draw of its own. Its speedup there counts: beyond a margin for noise its times are made longer. Where a graph is
replayed, first replays are compared with later ones on such inputs (`evaluator.timing.integrity.graph_replays`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluator.devices.base import RoundPlan
from evaluator.timing import stats
from evaluator.timing.contender import Contender, fastest_comparator
from evaluator.timing.contender_round import ContenderRound, compared_calls
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.overhead import ClockRule
from evaluator.timing.rounds import Rounds

_ROUNDS, _MOST_ROUNDS = 2, 8  # more than two only while others use a child's core


class RepeatedIntegers:
    """Slows suspects that are faster than the fastest comparator only where integers repeat."""

    name = "repeated_integers"

    def run(self, session: TimedSession) -> None:
        rounds, contenders, plan = session.rounds, session.contenders, session.plans[0]
        margin, rule = session.protocol.integrity.repeated_integers, ClockRule.of(contenders, session.protocol)
        fastest = fastest_comparator(contenders)
        if plan.replays > 1 or not rounds.input_maker.integers_repeat or fastest is None:
            return
        ratios = {c.name: session.log_ratios(fastest.name, c.name) for c in contenders if c.suspect}
        seemed = {name: stats.ratio_interval(logs)[0] for name, logs in ratios.items()}
        suspects = [c for c in contenders if seemed.get(c.name, 0.0) > 1 + margin]
        if not suspects:
            return
        compared, once = [fastest, *suspects], replace(plan, calls=rounds.drawable_calls(plan.calls))
        if once != plan:
            for contender in compared:
                rounds.run(contender, rounds.repeated_inputs(once.calls), once)  # prepares it for such rounds
        tries: list[Mapping[str, float]] = []
        for _ in range(_MOST_ROUNDS):
            taken_us = _taken_us(rounds, compared, once, rule, session.protocol.waited_share)
            tries += [taken_us] if taken_us is not None else []
            if len(tries) == _ROUNDS:
                break
        why = "" if len(tries) == _ROUNDS else "others used its core, or the comparator's, nearly all the time"
        for contender in suspects:
            contender.note_unchecked(self.name, why)
        for contender in suspects if tries else ():
            ratio = max(taken_us[fastest.name] / taken_us[contender.name] for taken_us in tries)
            slower = max(1.0, seemed[contender.name] / (ratio * (1 + margin)))
            contender.slow_by(self.name, slower)
            contender.fresh_draws = {
                "against": fastest.name,
                "ratio": round(ratio, 4),
                "ratio_in_rounds": round(seemed[contender.name], 4),
                "taken_for_slower": round(slower, 4),
            }


def _taken_us(
    rounds: Rounds, contenders: Sequence[Contender], plan: RoundPlan, rule: ClockRule, most_waiting: float
) -> Mapping[str, float] | None:
    """Return each contender's time of a call on the same inputs, with a draw for each call; None where one of them
    waited for its core for a larger share of its round."""
    inputs = rounds.drawn_inputs(plan.calls)
    rounds.measure_null(inputs, plan, 2)
    found, waited = {}, False
    for contender in rounds.input_maker.shuffled(contenders):
        done = rounds.run(contender, inputs, plan, read=compared_calls(contender, plan.calls))
        rounds.verifier.verify(ContenderRound(contender, inputs, done))
        found[contender.name] = rounds.overhead.call_us(done, rule)
        waited = waited or done.waited_us > most_waiting * done.wall_us
    return None if waited else found
