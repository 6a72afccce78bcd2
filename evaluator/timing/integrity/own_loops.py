"""Check that our loop makes the timed calls.

Native code can reach the harness of its own process and replace our loop by its own. It then saves the Python around
each call: the harness's, which an empty call needs, too, and that of its own `forward`. A kernel of some microseconds
then seems twice as fast as for any caller. No output is wrong, and single calls are as fast in such a loop. But a call
through our loop is in the interpreter for at least as long as an empty call. So the process is sampled from outside, at
random moments of rounds like the timed ones, and a child that is there for less than half as long was not called by us.
The cost of a round of one call, asking and answering, is not counted.

A child that spends that time in the interpreter anyway can gain no more than the Python of its own `forward`. While its
first thread waits for others of its own, it is not in the interpreter.

A child can notice that it was stopped, and leave the calls to our loop from then on. So a confirmation looks at its
Candidate again, once a round at most and not in every round; the rounds in between are timed. One that was honest since
the last look has the honest time there, and its speedup in these rounds counts.

Where too few samples come to tell, because other programs use the judge's core or the kernel does not say how long a
process ran, that is noted: the kernel passes, but is not promoted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.timing import stats
from evaluator.timing.contender import Contender, fastest_comparator
from evaluator.timing.contender_round import STAGE
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.integrity.suspects import harness_suspects
from evaluator.timing.overhead import ClockRule
from evaluator.timing.protocol import IntegrityMargins
from evaluator.timing.rounds import Rounds
from evaluator.types import Verdict
from evaluator.units import time_text

_FEWEST_SAMPLES, _MOST_SAMPLES = 30, 400  # of a child
_FEWEST_SEEN = 3  # samples in the interpreter: a child that left it hardly reaches them
_SURELY_THERE = 0.75  # the part of an empty call's time there at which no more samples are taken
_PATIENCE = 10  # times as long, at most, while there are too few samples to tell
_SHORT_ROUNDS = 4  # of one call; the shortest counts
_LOOKED_AT, _FEWEST_TIMED = 2 / 3, 8  # rounds with one look, of all such rounds; rounds in between


@dataclass(slots=True)
class _Samples:
    """Samples of a child in some rounds: the time that it ran, all samples, and those in the interpreter."""

    rounds: int = 0
    ran_us: float = 0.0
    samples: int = 0
    interpreted: int = 0
    undisturbed_us: float = 0.0  # the shortest round without samples: each stop costs some 20 us

    def add(self, done: Round) -> None:
        self.rounds += 1
        self.ran_us += done.diagnostics.get("active_us", 0.0)
        self.samples += done.diagnostics.get("looks", 0)
        self.interpreted += done.diagnostics.get("interpreted", 0)

    @property
    def share(self) -> float:
        return self.interpreted / max(1, self.samples)

    @property
    def round_us(self) -> float:
        return self.ran_us / max(1, self.rounds)

    def least_share(self, empty: _Empty, of_empty_call: float) -> float:
        """Return the least share of its time that this child has to be in the interpreter, given the null child's.

        0 where it is not known: the kernel may not tell how long a process ran.
        """
        if not self.round_us or not empty.short_us or empty.samples.samples < _FEWEST_SAMPLES:
            return 0.0
        return min(1.0, empty.samples.share * self._least_share_bound(empty, of_empty_call))

    def _least_share_bound(self, empty: _Empty, of_empty_call: float) -> float:
        """Return `least_share` for a null child that is always in the interpreter, the most that it can be.

        1 where it is not known.
        """
        if not self.round_us or not empty.short_us:
            return 1.0
        calls_us = max(0.0, empty.samples.undisturbed_us - empty.short_us)
        return (empty.short_us + of_empty_call * calls_us) / self.round_us

    def chance(self, share: float) -> float:
        """Return the probability that a child in the interpreter for `share` of its time is seen there so rarely."""
        if self.share >= share:
            return 1.0
        rest = 1.0 - share
        terms = (
            math.comb(self.samples, k) * share**k * rest ** (self.samples - k) for k in range(self.interpreted + 1)
        )
        return math.fsum(terms)

    def why_unknown(self, empty: _Empty, margins: IntegrityMargins) -> str:
        """Say why these samples do not tell whether the child is in the interpreter for its least share.

        Return "" where they tell: it was seen there, or a child that never is would have been refused. Return "" also
        where even `_MOST_SAMPLES` could not refuse one: its calls are so long that the interpreter hardly matters.
        """
        null, error, least = (
            empty.samples,
            margins.interpreter_error,
            self.least_share(empty, margins.interpreter_share),
        )
        if not self.ran_us or not null.ran_us:
            return "the kernel does not tell how long a process ran"
        if _needed(self._least_share_bound(empty, margins.interpreter_share), error) > _MOST_SAMPLES:
            return ""  # and rounds of so few empty calls may be too short to be sampled
        if null.samples < _FEWEST_SAMPLES:
            return f"only {null.samples} samples of an empty kernel, because others used the judge's core"
        if not least:
            return "the interpreter is not recognised in an empty kernel's process"
        seen = self.interpreted >= _FEWEST_SEEN and self.share >= least
        needed = max(_FEWEST_SAMPLES, _needed(least, error))
        enough = _FEWEST_SAMPLES if seen or needed > _MOST_SAMPLES else needed
        if self.samples < enough:
            return f"only {self.samples} of {enough} samples, because others used the judge's core"
        # Answering for many calls takes time there, too: who looks on until the share is large is lucky at last.
        surely = _SURELY_THERE if self.samples < _MOST_SAMPLES else margins.interpreter_share
        doubtful = needed <= _MOST_SAMPLES and self.share < self.least_share(empty, surely)
        return "it is more rarely in the interpreter than an empty call, but not for certain" if doubtful else ""


@dataclass(frozen=True, slots=True)
class _Empty:
    """Samples of the null child, and the time of a round with one empty call."""

    samples: _Samples
    short_us: float


def _needed(least: float, error: float) -> int:
    """Return how many samples refuse a child that is never seen in the interpreter."""
    return 1 if least >= 1.0 else math.ceil(math.log(error) / math.log1p(-least))


class OwnLoops:
    """Rejects a suspect that is hardly ever in the interpreter during timed calls."""

    name = "own_loops"

    def run(self, session: TimedSession) -> None:
        names = harness_suspects(session)
        suspects = [contender for contender in session.contenders if contender.name in names]
        if not suspects:
            return
        margins = session.protocol.integrity
        null = _sample(session.rounds, suspects, session.plans[-1], margins, patient=session.patient)
        first = suspects[0]
        if first is session.contenders[0] and not session.racing and not first.unchecked.get(self.name):
            _look_rarely(session, first, null)


def _sample(
    rounds: Rounds, suspects: Sequence[Contender], plan: RoundPlan, margins: IntegrityMargins, *, patient: bool = True
) -> _Empty:
    """Sample each suspect. The first one, a Candidate on trial, is sampled longer by a `patient` judge where there are
    too few samples."""
    null, once, error = _Samples(), replace(plan, calls=1), margins.interpreter_error
    short_us = min(rounds.run_null(rounds.repeated_inputs(1), once).ran_us for _ in range(_SHORT_ROUNDS))
    whole = (rounds.run_null(rounds.repeated_inputs(plan.calls), plan).ran_us for _ in range(_SHORT_ROUNDS))
    null.undisturbed_us = min(whole)
    empty = _Empty(null, short_us)
    for contender in suspects:
        found, least, why = _Samples(), 0.0, ""
        end = time.monotonic() + margins.interpreter_s
        longer = patient and contender is suspects[0]
        late = end + (_PATIENCE - 1) * margins.interpreter_s if longer else end
        while found.samples < _MOST_SAMPLES and (time.monotonic() < end or (why and time.monotonic() < late)):
            null.add(rounds.run_null(rounds.repeated_inputs(plan.calls), plan, watch=True))
            found.add(rounds.run(contender, rounds.new_inputs(plan.calls), plan, watch=True))
            least, why = found.least_share(empty, margins.interpreter_share), found.why_unknown(empty, margins)
            if found.samples >= _FEWEST_SAMPLES and (found.chance(least) < error or not why):
                break
        contender.own_loop = {
            "looks": found.samples, "in_interpreter": found.interpreted, "least_share": round(least, 3),
        }  # fmt: skip
        if found.chance(least) < error:
            raise _rejection(contender, null, plan)
        contender.note_unchecked(OwnLoops.name, why)
    return empty


def _rejection(contender: Contender, null: _Samples, plan: RoundPlan) -> Rejection:
    return Rejection(
        Verdict.REWARD_HACK,
        STAGE,
        "a loop of its own makes the timed calls: it is hardly ever in the interpreter, where an empty call"
        f" spends {time_text(null.share * null.undisturbed_us / plan.executions)}",
        check="own_loop",
        **contender.own_loop,
    )


def _look_rarely(session: TimedSession, contender: Contender, empty: _Empty) -> None:
    """Look once a round at most, at a random moment, and time the rounds in between. Raise Rejection."""
    rounds, margins, fastest = session.rounds, session.protocol.integrity, fastest_comparator(session.contenders)
    assert fastest is not None  # without one nobody is a suspect
    plan, rule = session.plans[-1], ClockRule.of(session.contenders, session.protocol)
    found, logs, least, why, looks = _Samples(), list[float](), 0.0, "", contender.own_loop
    end = time.monotonic() + _PATIENCE * margins.interpreter_s
    while found.samples < _MOST_SAMPLES and time.monotonic() < end:
        inputs = rounds.new_inputs(plan.calls)
        if rounds.secret_fraction() < _LOOKED_AT:
            at_us = rounds.secret_fraction() * contender.official_us() * plan.executions
            found.add(rounds.run(contender, inputs, plan, watch=True, watch_at_us=at_us))
        else:
            both = rounds.input_maker.shuffled([contender, fastest])
            taken_us = {c.name: rounds.overhead.call_us(rounds.run(c, inputs, plan), rule) for c in both}
            logs.append(math.log(taken_us[fastest.name] / taken_us[contender.name]))
        least = found.least_share(empty, margins.interpreter_share)
        why = found.why_unknown(empty, margins) or _too_few_timed(logs)
        if not why:
            break
    contender.own_loop = {
        **looks, "rare_looks": found.samples, "rarely_in_interpreter": found.interpreted,
    }  # fmt: skip
    if found.chance(least) < margins.interpreter_error:
        raise _rejection(contender, empty.samples, plan)
    contender.note_unchecked(OwnLoops.name, why)
    if len(logs) < _FEWEST_TIMED:
        return
    seemed, _ = stats.ratio_interval(session.log_ratios(fastest.name, contender.name))
    _, between = stats.ratio_interval(logs)
    slower = max(1.0, seemed / (between.high * (1 + margins.single_calls)))
    contender.slow_by(OwnLoops.name, slower)
    contender.own_loop = {**contender.own_loop, "taken_for_slower": round(slower, 4)}


def _too_few_timed(logs: Sequence[float]) -> str:
    few = len(logs) < _FEWEST_TIMED
    return f"only {len(logs)} rounds between looks were timed, because others used the cores" if few else ""
