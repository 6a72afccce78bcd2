"""Is a kernel as much faster when its calls come one at a time?

A file that reaches the harness could compute all calls of a round in one operation where elements do not depend on each
other, and mend the few that the chain changes: what calling costs would then be paid once a round. So on a CPU a
Candidate whose file is not plain (`is_restricted`), and which seems faster than the fastest comparator, makes some
more calls whose inputs are not there before the call ahead of them has returned. Nothing is saved there by doing
several at once; all else is as in a round. The share of the comparator's time that a Candidate saves may be larger in
rounds than it is there by noise and a margin; what is beyond is added to its times, and nobody is refused for it.

Nor does a call take less than one of the null child, which does nothing in our own harness.
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
from evaluator.devices.base import Early, OneByOne, RoundPlan, Singles
from evaluator.errors import Rejection
from evaluator.timing import stats
from evaluator.timing.contender import MOST_OVERHEAD, Contender, Ratios, fastest_comparator
from evaluator.timing.rounds import Rounds
from evaluator.timing.runs import STAGE, Run
from evaluator.types import Verdict

_NULL = "null"
_SESSIONS = 6
_CALLS, _FEWEST, _SESSION_US = 24, 3, 3000.0  # of a session: fewer calls where they take long
_SETTLING = 1  # calls of a session that do not count
_MOST_US = 10_000.0  # a comparator of which calling is little
_MARGIN = 0.05  # of the comparator's time: honest kernels differ in what single calls make colder or warmer
_CONFIDENCE = 0.99
_MOST_HARNESS = 0.9
_LEAST_US = 0.1  # of its own that a comparator takes

Times = Mapping[str, Sequence[float]]  # microseconds of each call, by whose it was


def doubted(rounds: Rounds, contenders: Sequence[Contender], log_ratios: Ratios) -> dict[str, float]:
    """The suspects that could reach the harness and seem faster than the fastest comparator, by name, each with the
    share of that one's time that it saves in rounds. None of them is taken to need less than a call of nothing."""
    fastest = fastest_comparator(contenders)
    if fastest is None or not isinstance(rounds.backend, OneByOne):
        return {}
    found: dict[str, float] = {}
    for contender in (c for c in contenders if c.suspect and not c.plain):
        contender.raise_to({n: (1 - MOST_OVERHEAD) * us / n for n, us in rounds.overhead_us.items()})
        ratio, _ = stats.ratio_interval(log_ratios(fastest.name, contender.name))
        if 1 - 1 / ratio > _MARGIN:
            found[contender.name] = 1 - 1 / ratio
    return found


def hold(rounds: Rounds, contenders: Sequence[Contender], saved: Mapping[str, float]) -> None:
    """Make the times of those who are `doubted` longer by what they save only where calls come many at once, and note
    what was seen in their `singly`. Raises Rejection, ComparatorFailed."""
    if not saved:
        return
    backend = rounds.backend
    assert isinstance(backend, OneByOne)
    fastest = fastest_comparator(contenders)
    assert fastest is not None
    suspects = [c for c in contenders if c.name in saved]
    count = _count(rounds, min(fastest.all_samples()))
    if count < _FEWEST or not backend.has_company:
        why = "calls take long" if count < _FEWEST else "the judge and the candidate share the only core"
        for contender in suspects:
            contender.singly = {"not_looked_at": why}
        return
    times_us = _times_us(rounds, [fastest, *suspects], count)
    harness_share = _harness_share(rounds, fastest)
    for contender in suspects:
        _hold(contender, saved[contender.name], fastest, times_us, harness_share)


def _hold(contender: Contender, in_rounds: float, fastest: Contender, times_us: Times, harness_share: float) -> None:
    mine, theirs, null = (times_us[name] for name in (contender.name, fastest.name, _NULL))
    own_us = max(_LEAST_US, stats.trimmed(theirs)[0] - stats.trimmed(null)[0])
    harness_us = own_us * harness_share / (1 - harness_share)
    gained_us, interval = stats.mean_interval([b - a for a, b in zip(mine, theirs, strict=True)], _CONFIDENCE)
    saved, at_most = (_saved(own_us + harness_us, us, harness_us) for us in (gained_us, interval.high))
    allowed = max(0.0, at_most) + _MARGIN
    slower = max(1.0, (1 - allowed) / (1 - in_rounds))
    contender.slow_by(slower)
    contender.singly = {
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


def _harness_share(rounds: Rounds, contender: Contender) -> float:
    """Of the time of a contender's rounds, harness included. Taken from rounds alone, which others on this machine may
    have made longer than they made single calls."""
    harness_us = min(us / n for n, us in rounds.overhead_us.items() if n in contender.samples)
    official_us = contender.official_us()
    whole_us = min(official_us + harness_us, official_us / (1 - MOST_OVERHEAD))
    return min(harness_us / whole_us, _MOST_HARNESS)


def _saved(call_us: float, gained_us: float, harness_us: float) -> float:
    """Which share of a call's time is saved, if both are counted as in rounds: the harness with them, of which no more
    than a tenth of a round is taken off."""
    before, after = (us - min(harness_us, MOST_OVERHEAD * us) for us in (call_us, call_us - gained_us))
    return 1 - after / before


def _count(rounds: Rounds, call_us: float) -> int:
    """How many calls make a session; few where they take long, none where that is very long."""
    if call_us > _MOST_US:
        return 0
    return min(_CALLS, rounds.planned(call_us, max(_SESSION_US, _FEWEST * call_us)).calls)


def _times_us(rounds: Rounds, contenders: Sequence[Contender], count: int) -> Times:
    """How long calls took that came one at a time: of every contender and of the null child, on the same inputs."""
    null = rounds.null
    layouts = {c.name: _layouts(rounds.run(c, rounds.repeated(1), RoundPlan(calls=1)).replies[0]) for c in contenders}
    layouts[null.name] = _layouts(rounds.like.reply)
    found: dict[str, list[float]] = {name: [] for name in layouts}
    order = rounds.inputs.shuffled([*contenders, null])
    for _ in range(_SESSIONS):
        fresh = replace(rounds.fresh(count), link=None)
        done = [(c, rounds.run_singly(c, fresh, layouts[c.name])) for c in order]
        order.reverse()
        for contender, singles in done:
            found[contender.name] += singles.times_us[_SETTLING:]
            if contender is null:
                continue
            rounds.verifier.verify(Run(contender, fresh, singles.round))
            if contender.compared_in_full:
                _check_complete(singles)
    return found


def _layouts(reply: Any) -> list[TensorSpec]:
    return [TensorSpec.from_json({**claim, "offset": 0}) for claim in tensor_claims(reply)]


def _check_complete(singles: Singles) -> None:
    """What was read of an output when its call had returned is what it holds in the end. Raises Rejection."""
    for early, outputs in zip(singles.early, singles.round.outputs, strict=True):
        if early.offsets and not _holds(outputs[early.leaf], early):
            reason = "a call returned before its output was complete"
            raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="complete_output")


def _holds(output: torch.Tensor, early: Early) -> bool:
    memory, width = output.untyped_storage(), len(early.data) // len(early.offsets)
    pieces = [early.data[start : start + width] for start in range(0, len(early.data), width)]
    return all(
        ctypes.string_at(memory.data_ptr() + offset, width) == piece
        for offset, piece in zip(early.offsets, pieces, strict=True)
        if offset + width <= memory.nbytes()  # it may be laid out otherwise than before
    )
