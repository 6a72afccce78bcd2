"""Check that a kernel is as much faster when its calls come one at a time.

A file that reaches the harness could compute all calls of a round in one operation where elements do not depend on each
other, repair the few that the chain changes, and pay the cost of calling once a round. So on a CPU a Candidate that is
not plain (`is_restricted`) and seems faster than the fastest comparator makes some more calls. The inputs of
each are there only after the call before it has returned. Batching saves nothing there; all else is as in a round. The
share of the comparator's time that a Candidate saves may be larger in rounds by noise and a margin; anything beyond is
added to its times, and nothing is refused for it.

Calls during which other programs had the judge's or the child's core do not count. Where too few are left, or their
times differ so much that they say nothing, that is noted: the kernel passes, but is not promoted.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
_SESSIONS, _FEWEST_SESSIONS, _MOST_SESSIONS = 6, 2, 60  # few where calls take long; many where most are disturbed
_CALLS, _FEWEST, _SESSION_US = 24, 3, 3000.0  # of a session; fewer calls where they take long
_SETTLING = 1  # first calls of a session that do not count
_FEWEST_PAIRS = 4
_LONG_S, _PATIENCE_S = 1.0, 10.0  # for all sessions of long calls; for more sessions while there is too little to tell
_PRECISE = 0.1  # half-width of the interval, as a share of the comparator's time, that tells enough
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
        if all(plan.executions == 1 for plan in session.plans):
            return  # a round is a single call
        if not backend.judge_has_own_core:
            for contender in chosen:
                contender.note_unchecked(self.name, "the judge and the kernel share a core: let it have one more")
            return
        harness_share = _harness_share(rounds, fastest, session.protocol.overhead_share)

        def looked(times_us: CallTimes) -> list[_Saving]:
            return [_saving(c, fastest, times_us, harness_share, session.protocol) for c in chosen]

        def tells_nothing(times_us: CallTimes) -> bool:
            return any(_why(saving) for saving in looked(times_us))

        patience_s = _PATIENCE_S if session.patient else 0.0
        times_us = _times_us(rounds, [fastest, *chosen], min(fastest.all_samples()), tells_nothing, patience_s)
        for contender, saving in zip(chosen, looked(times_us), strict=True):
            contender.note_unchecked(self.name, _why(saving))
            if saving.pairs >= _FEWEST_PAIRS:
                _slow(contender, saved[contender.name], fastest, times_us, saving, session.protocol)


@dataclass(frozen=True, slots=True)
class _Saving:
    """The share of the comparator's time that a contender saves in so many pairs of single calls, and the most that it
    may be."""

    pairs: int
    saved: float
    at_most: float


def _why(saving: _Saving) -> str:
    """Say why nothing can be told; "" where something can."""
    if saving.pairs < _FEWEST_PAIRS:
        return "others used the judge's or the kernel's core in nearly all single calls"
    wide = not saving.at_most - saving.saved <= _PRECISE
    return f"the times of {saving.pairs} single calls differ too much to tell" if wide else ""


def _saving(
    contender: Contender,
    fastest: Contender,
    times_us: CallTimes,
    harness_share: float,
    protocol: TimingProtocol,
) -> _Saving:
    margins, overhead_share = protocol.integrity, protocol.overhead_share
    if len(times_us[contender.name]) < _FEWEST_PAIRS:
        return _Saving(len(times_us[contender.name]), 0.0, 0.0)
    mine, theirs, null = (times_us[name] for name in (contender.name, fastest.name, _NULL))
    own_us = max(_LEAST_US, stats.trimmed(theirs)[0] - stats.trimmed(null)[0])
    harness_us = own_us * harness_share / (1 - harness_share)
    gains_us = [b - a for a, b in zip(mine, theirs, strict=True)]
    gained_us, interval = stats.mean_interval(gains_us, margins.single_calls_confidence)
    saved, at_most = (_saved(own_us + harness_us, us, harness_us, overhead_share) for us in (gained_us, interval.high))
    return _Saving(len(mine), saved, at_most)


def _slow(
    contender: Contender,
    in_rounds: float,
    fastest: Contender,
    times_us: CallTimes,
    saving: _Saving,
    protocol: TimingProtocol,
) -> None:
    mine, theirs, null = (times_us[name] for name in (contender.name, fastest.name, _NULL))
    allowed = max(0.0, saving.at_most) + protocol.integrity.single_calls
    slower = max(1.0, (1 - allowed) / (1 - in_rounds))
    contender.slow_by(SingleCalls.name, slower)
    contender.single_calls = {
        "against": fastest.name,
        "saved": round(saving.saved, 4),
        "saved_at_most": round(saving.at_most, 4),
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
    """Return how many calls make a session; few where they take long."""
    return max(_FEWEST, min(_CALLS, rounds.planned(call_us, max(_SESSION_US, _FEWEST * call_us)).calls))


def _sessions(call_us: float, count: int) -> int:
    return max(_FEWEST_SESSIONS, min(_SESSIONS, int(_LONG_S * 1e6 / (count * call_us))))


def _times_us(
    rounds: Rounds,
    contenders: Sequence[Contender],
    call_us: float,
    tells_nothing: Callable[[CallTimes], bool],
    patience_s: float,
) -> CallTimes:
    """Return the times of single calls of every contender and of the null child, on the same inputs: of those calls in
    which nobody was disturbed. There are more sessions, for `patience_s`, while they tell nothing."""
    null, count = rounds.null, _count(rounds, call_us)
    layouts = {
        c.name: _layouts(rounds.run(c, rounds.repeated_inputs(1), RoundPlan(calls=1)).replies[0]) for c in contenders
    }
    layouts[null.name] = _layouts(rounds.typical.reply)
    found: dict[str, list[float]] = {name: [] for name in layouts}
    order, end = rounds.input_maker.shuffled([*contenders, null]), time.monotonic() + patience_s
    for session in range(_MOST_SESSIONS):
        if session >= _sessions(call_us, count) and (time.monotonic() > end or not tells_nothing(found)):
            break
        inputs = replace(rounds.new_inputs(count), link=None)
        done = [(c, rounds.run_single_calls(c, inputs, layouts[c.name])) for c in order]
        order.reverse()
        counted = [turn for turn in range(_SETTLING, count) if not any(one.disturbed[turn] for _, one in done)]
        for contender, singles in done:
            found[contender.name] += [singles.times_us[turn] for turn in counted]
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
