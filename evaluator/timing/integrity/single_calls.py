"""Check that a kernel is as much faster when its calls come one at a time.

A file that reaches the harness could compute all calls of a round in one operation where elements do not depend on each
other, repair the few that the chain changes, and pay the cost of calling once a round. So on a CPU a Candidate that is
not plain (`is_restricted`) and seems faster than the fastest comparator makes some more calls. The inputs of
each are there only after the call before it has returned. Batching saves nothing there; all else is as in a round. The
share of the comparator's time that a Candidate saves may be larger in rounds by noise and a margin; anything beyond is
added to its times, and nothing is refused for it.
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.comparison.claims import tensor_claims
from evaluator.devices.base import EarlyRead, RoundPlan, SingleCallBackend, SingleCallRound
from evaluator.errors import Rejection
from evaluator.timing import stats
from evaluator.timing.contender import Contender, fastest_comparator
from evaluator.timing.contender_round import STAGE, ContenderRound
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.integrity.suspects import harness_suspects
from evaluator.timing.protocol import TimingProtocol
from evaluator.timing.rounds import Rounds
from evaluator.types import Verdict

_NULL = "null"
_SESSIONS = 6
_CALLS, _FEWEST, _SESSION_US = 24, 3, 3000.0  # of a session; fewer calls where they take long
_SETTLING = 1  # first calls of a session that do not count
_MOST_US = 10_000.0  # calling is a small part of a slower comparator
_MOST_HARNESS = 0.9
_LEAST_US = 0.1  # of a comparator's own work

CallTimes = Mapping[str, Sequence[float]]  # microseconds of each call, by contender


class SingleCalls:
    """Slows suspects by the time that they save only where many calls come at once, and notes the evidence."""

    name = "single_calls"

    def run(self, session: TimedSession) -> None:
        rounds, saved = session.rounds, harness_suspects(session)
        if not saved:
            return
        backend, fastest = rounds.backend, fastest_comparator(session.contenders)
        assert isinstance(backend, SingleCallBackend)
        assert fastest is not None
        chosen = [c for c in session.contenders if c.name in saved]
        count = _count(rounds, min(fastest.all_samples()))
        if count < _FEWEST or not backend.judge_has_own_core:
            why = "calls take long" if count < _FEWEST else "the judge and the candidate share the only core"
            for contender in chosen:
                contender.single_calls = {"not_looked_at": why}
            return
        times_us = _times_us(rounds, [fastest, *chosen], count)
        harness_share = _harness_share(rounds, fastest, session.protocol.overhead_share)
        for contender in chosen:
            _slow(contender, saved[contender.name], fastest, times_us, harness_share, session.protocol)


def _slow(
    contender: Contender,
    in_rounds: float,
    fastest: Contender,
    times_us: CallTimes,
    harness_share: float,
    protocol: TimingProtocol,
) -> None:
    margins, overhead_share = protocol.integrity, protocol.overhead_share
    mine, theirs, null = (times_us[name] for name in (contender.name, fastest.name, _NULL))
    own_us = max(_LEAST_US, stats.trimmed(theirs)[0] - stats.trimmed(null)[0])
    harness_us = own_us * harness_share / (1 - harness_share)
    gains_us = [b - a for a, b in zip(mine, theirs, strict=True)]
    gained_us, interval = stats.mean_interval(gains_us, margins.single_calls_confidence)
    saved, at_most = (_saved(own_us + harness_us, us, harness_us, overhead_share) for us in (gained_us, interval.high))
    allowed = max(0.0, at_most) + margins.single_calls
    slower = max(1.0, (1 - allowed) / (1 - in_rounds))
    contender.slow_by(SingleCalls.name, slower)
    contender.single_calls = {
        "against": fastest.name,
        "saved": round(saved, 4),
        "saved_at_most": round(at_most, 4),
        "saved_in_rounds": round(in_rounds, 4),
        "taken_for_slower": round(slower, 4),
        "calls": len(mine),
        "median_us": round(statistics.median(mine), 3),
        "against_median_us": round(statistics.median(theirs), 3),
        "null_median_us": round(statistics.median(null), 3),
    }


def _harness_share(rounds: Rounds, contender: Contender, overhead_share: float) -> float:
    """Return the harness's share of a contender's rounds. Rounds alone give it, because other processes may have slowed
    rounds more than single calls."""
    harness_us = min(rounds.overhead.harness_us(n) / n for n in contender.samples)
    official_us = contender.official_us()
    whole_us = min(official_us + harness_us, official_us / (1 - overhead_share))
    return min(harness_us / whole_us, _MOST_HARNESS)


def _saved(call_us: float, gained_us: float, harness_us: float, overhead_share: float) -> float:
    """Return the share of a call's time that is saved. Both times are counted as in rounds: with the harness, less at
    most `overhead_share`."""
    before, after = (us - min(harness_us, overhead_share * us) for us in (call_us, call_us - gained_us))
    return 1 - after / before


def _count(rounds: Rounds, call_us: float) -> int:
    """Return how many calls make a session; few where they take long, none where they take very long."""
    if call_us > _MOST_US:
        return 0
    return min(_CALLS, rounds.planned(call_us, max(_SESSION_US, _FEWEST * call_us)).calls)


def _times_us(rounds: Rounds, contenders: Sequence[Contender], count: int) -> CallTimes:
    """Return the times of single calls of every contender and of the null child, on the same inputs."""
    null = rounds.null
    layouts = {
        c.name: _layouts(rounds.run(c, rounds.repeated_inputs(1), RoundPlan(calls=1)).replies[0]) for c in contenders
    }
    layouts[null.name] = _layouts(rounds.typical.reply)
    found: dict[str, list[float]] = {name: [] for name in layouts}
    order = rounds.input_maker.shuffled([*contenders, null])
    for _ in range(_SESSIONS):
        inputs = replace(rounds.new_inputs(count), link=None)
        done = [(c, rounds.run_single_calls(c, inputs, layouts[c.name])) for c in order]
        order.reverse()
        for contender, singles in done:
            found[contender.name] += singles.times_us[_SETTLING:]
            if contender is null:
                continue
            rounds.verifier.verify(ContenderRound(contender, inputs, singles.round))
            if contender.compared_in_full:
                _check_complete(singles)
    return found


def _layouts(reply: Any) -> list[TensorSpec]:
    return [TensorSpec.from_json({**claim, "offset": 0}) for claim in tensor_claims(reply)]


def _check_complete(singles: SingleCallRound) -> None:
    """Reject outputs that were not complete when their call had returned."""
    for early, outputs in zip(singles.early, singles.round.outputs, strict=True):
        if early.offsets and not _still_holds(outputs[early.leaf], early):
            reason = "a call returned before its output was complete"
            raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="complete_output")


def _still_holds(output: torch.Tensor, early: EarlyRead) -> bool:
    memory, width = output.untyped_storage(), len(early.data) // len(early.offsets)
    pieces = [early.data[start : start + width] for start in range(0, len(early.data), width)]
    return all(
        ctypes.string_at(memory.data_ptr() + offset, width) == piece
        for offset, piece in zip(early.offsets, pieces, strict=True)
        if offset + width <= memory.nbytes()  # its layout may have changed
    )
