"""How long a call takes, on the judge's clock.

A round is n calls over n input sets that nobody has seen before. One sample is its wall time divided by n, less the
least that a null child (which returns ready-made outputs) took for a round of the same shape; but no more than a tenth
is taken off. Everything that is compared runs side by side: one round each on the same inputs, in secret order and
back, and ratios come from such pairs. The official time is the largest over the round sizes of the median sample, so
padding one size does not help. Every output of a Candidate's timed calls is compared with the oracle's; of a
Baseline's, one call per round.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from evaluator.correctness import buffers
from evaluator.device_session import DeviceSession
from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import Rejection
from evaluator.oracle.oracle import Oracle
from evaluator.screening import libraries
from evaluator.timing import stats
from evaluator.timing.contender import Contender, call_us
from evaluator.timing.integrity import own_loops, repeated_integers, single_calls
from evaluator.timing.integrity.graph_replays import skipped_work
from evaluator.timing.rounds import Rounds, ends_after
from evaluator.timing.runs import STAGE, Run, to_read
from evaluator.types import BaselineTime, Clock, Measurement, Verdict, Workload

_SIZES = (1.0, 1.6)  # of a round, in units of the plan
_NULL_ROUNDS = 4
_REFINEMENTS = 3
_WARM_UP_ROUNDS = 2
_LEAST_OF_GRAPH, _LEAST_OF_CALLS = 0.02, 0.5  # of a round's wall time is the calls', when rounds are planned
_WATCHED_CHECKED = 4  # one in so many of the rounds in which a child is watched
_HARNESS_US = 20.0
_REHEARSALS = 8  # at the least, where a graph is replayed in a round
_WAITED = 0.03  # of a round's net time a child may wait for its core
_DISCARDED = 1  # times the most pairs may be discarded for that; then what there is counts


@dataclass(frozen=True, slots=True)
class Rules:
    """When to stop. `pairs` are rounds of every contender; racing stops early, `confirm` sets least = most."""

    least_pairs: int = 4
    most_pairs: int = 10
    narrow: float = 0.03
    racing: bool = True
    budget_s: float = 1.5  # of a Workload; racing alone may stop for it, after the least pairs
    round_us: float | None = None  # None: what does for a search on the device
    rehearse: bool = True  # every kind of adversarial values, in rounds that do not count


@dataclass(frozen=True, slots=True)
class Looks:
    """How long a child is watched: for so long, so often, or, with `until_library`, until a library was seen."""

    span_s: float = 0.1
    enough: int = 100
    until_library: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """Who is watched, and for how long."""

    name: str
    looks: Looks


BRIEFLY = Looks()
# A small product is a fiftieth of a call: the rest is what calls it.
FOR_LIBRARIES = Looks(span_s=5.0, enough=2000, until_library=True)


class Bench:
    """Times several children on one Workload. All have been constructed, and share the oracle's parameters."""

    def __init__(
        self,
        room: DeviceSession,
        workload: Workload,
        oracle: Oracle,
        contenders: Sequence[Contender],
        *,
        first_call_s: float = 60.0,
    ) -> None:
        self.workload = workload
        self.contenders = list(contenders)
        self._rounds = Rounds(room, workload, oracle, first_call_s)
        self._plans: list[RoundPlan] = []
        self._order: Sequence[Contender] = ()
        self._graph = False
        self._warm = False
        self._may_discard = 0
        self._racing = True
        self._unverified: list[Run] = []
        self.pairs = self.discarded = 0

    @property
    def bytes_moved(self) -> int:
        """What one call must at least read and write: its inputs, its parameters, its outputs."""
        return self._rounds.bytes_moved

    def close(self, *, ending: Collection[str] = ()) -> None:
        """Everybody's graph is given up, but of those who are `ending`: theirs goes with them."""
        self._rounds.close()
        self._release(ending)

    def run(self, rules: Rules, watched: Watched | None = None) -> dict[str, int]:
        """Rounds until the rules are satisfied; what was seen of whom is `watched`. Raises Rejection,
        ComparatorFailed."""
        if not self.contenders:
            return {}
        self._racing = rules.racing
        self._warm_up(rules)
        self._pairs(rules, rehearse_at=self._rounds.secret(rules.least_pairs) if rules.rehearse else -1)
        seen: dict[str, int] = {}
        if watched:
            with self._beside():  # here, where it is prepared for such rounds
                seen = self.watch(watched.name, watched.looks)
        if self._skipped(racing=rules.racing) is not None:
            # Perhaps the device has become busy since: everything is timed again, and nothing of before counts.
            self._forget_samples()
            self._touch()
            self._pairs(rules, rehearse_at=-1)
            found = self._skipped(racing=False)
            if found is not None:
                raise found
        buffers.hold(self._rounds, self.contenders, self._plans[0])
        repeated_integers.hold(self._rounds, self.contenders, self._plans[0], self.official_log_ratios)
        saved = single_calls.doubted(self._rounds, self.contenders, self.official_log_ratios)
        own_loops.refuse(self._rounds, [c for c in self.contenders if c.name in saved], self._plans[-1])
        single_calls.hold(self._rounds, self.contenders, saved)
        self._check_least()
        return seen

    def _pairs(self, rules: Rules, rehearse_at: int) -> None:
        self._may_discard = _DISCARDED * rules.most_pairs
        end = time.monotonic() + rules.budget_s
        while self.pairs < rules.most_pairs:
            if self.pairs == rehearse_at:
                rehearse_at = -1
                self._rehearse(rules.least_pairs - self.pairs)
            self.pair()
            if self.pairs >= rules.least_pairs and (not rules.racing or self._enough(rules) or time.monotonic() > end):
                break
        with self._beside():
            self._verify()

    def _note(self, run: Run) -> None:
        """Keep a round until there are enough to be verified together; a large one, of which a device may not have room
        for another copy, is verified at once. Raises Rejection, ComparatorFailed."""
        room = self._rounds.backend.together_bytes
        self._unverified.append(run.kept() if run.bytes_held <= room else run)
        if sum(one.bytes_held for one in self._unverified) > room:
            with self._beside():
                self._verify()

    def _verify(self) -> None:
        runs, self._unverified = self._unverified, []
        self._rounds.verifier.verify(*runs)

    def _skipped(self, *, racing: bool) -> Rejection | None:
        return skipped_work(self._rounds, self.contenders, self._plans[0], racing=racing)

    def _forget_samples(self) -> None:
        for contender in self.contenders:
            contender.samples.clear()
        self._unverified.clear()
        self.pairs = self.discarded = 0

    def _rehearse(self, to_come: int) -> None:
        """Adversarial values of every kind that pairs do not hold, of which at least `to_come` are to come, through the
        timed loop, in rounds that do not count. They end after any replay: who works in late ones alone, which a
        kernel may learn to tell, has not worked in theirs. Raises Rejection."""
        usual, rounds = min(self._plans, key=lambda plan: plan.calls), self._rounds
        most = max(plan.replays for plan in self._plans)
        with self._beside():
            self._verify()  # what pairs hold need not be rehearsed
            shown_to = [c for c in self.contenders if c.compared_in_full]
            shortest = {c.name: c.shortest for c in shown_to}  # before these
            rehearsals = rounds.rehearsals(usual.calls, to_come, least=_REHEARSALS if most > 2 else 0)
            for number, fresh in enumerate(rehearsals):
                for contender in shown_to:
                    ends = ends_after(number, rounds.share(), most=most, shortest=shortest[contender.name])
                    plan = replace(usual, replays=ends)
                    self._note(Run(contender, fresh, rounds.run(contender, fresh, plan, read=plan.calls)))
            self._verify()

    def _beside(self) -> AbstractContextManager[None]:
        """Others may use the device meanwhile. What is confirmed has it alone all the time."""
        return self._rounds.room.turns.beside() if self._racing else nullcontext()

    def watch(self, name: str, looks: Looks = BRIEFLY) -> dict[str, int]:
        """How often a contender was seen in which function during a few more rounds, which are checked like the others
        (some of them, which nobody can tell beforehand) but not timed. Empty where the device does not tell. Raises
        Rejection."""
        rounds, contender = self._rounds, self._contender(name)
        seen: dict[str, int] = {}
        end = time.monotonic() + looks.span_s
        while True:
            fresh = rounds.fresh(self._plans[-1].calls)
            read = to_read(contender, self._plans[-1].calls)
            done = rounds.run(contender, fresh, self._plans[-1], read=read, watch=True)
            if not seen or rounds.secret(_WATCHED_CHECKED) == 0:
                rounds.verifier.verify(Run(contender, fresh, done))
            for place, count in done.diagnostics.get("ran", {}).items():
                seen[place] = seen.get(place, 0) + count
            told = looks.until_library and bool(libraries.sampled_libraries(seen))
            if "ran" not in done.diagnostics or told or sum(seen.values()) >= looks.enough or time.monotonic() > end:
                break
        return dict(sorted(seen.items(), key=lambda pair: -pair[1]))

    def leave_out(self, name: str) -> None:
        """Time the others alone, from the start."""
        self._plans.clear()
        self.replace([c for c in self.contenders if c.name != name])

    def replace(self, contenders: Sequence[Contender]) -> None:
        """Time other children from now on, in rounds of the same sizes; earlier samples are forgotten."""
        self._release()
        self.contenders = list(contenders)
        self._forget_samples()
        self._warm = False

    def log_ratios(self, over: str, under: str) -> list[float]:
        """Logarithms of (time of `over` / time of `under`), per pair."""
        return [log for logs in self._log_ratios_by_size(over, under) for log in logs]

    def _log_ratios_by_size(self, over: str, under: str) -> list[list[float]]:
        a, b = self._contender(over), self._contender(under)
        return [[math.log(x / y) for x, y in zip(a.samples[n], b.samples[n], strict=True)] for n in a.samples]

    def official_log_ratios(self, over: str, under: str) -> list[float]:
        """As `log_ratios`, of one round size alone where the two sizes disagree beyond their noise, the worse one."""
        logs = self._log_ratios_by_size(over, under)
        every = found = [log for some in logs for log in some]
        if len(every) < 4:
            return every
        _, interval = stats.mean_interval(every)
        for one in logs:
            if len(one) >= 2 and statistics.fmean(one) < interval.low:
                found = one
        return found

    def pair(self) -> None:
        """One round of every contender on the same fresh inputs."""
        plan, rounds = self._plans[self.pairs % len(self._plans)], self._rounds
        fresh = rounds.fresh(plan.calls)
        found = {c.name: rounds.run(c, fresh, plan, read=to_read(c, plan.calls)) for c in self._in_turn()}
        rounds.measure_null(fresh, plan, 1)
        disturbed = self.discarded < self._may_discard and any(map(self._disturbed, found.values()))
        for contender in self.contenders:
            self._note(Run(contender, fresh, found[contender.name]))
        for contender in () if disturbed else self.contenders:
            sample = call_us(found[contender.name], rounds.overhead_us)
            contender.samples.setdefault(plan.executions, []).append(sample)
        self.discarded += disturbed
        self.pairs += not disturbed

    def _in_turn(self) -> Sequence[Contender]:
        """A secret order for each size of round, then the same backwards. Who runs first after the judge's own work is
        a little slower, and so may be who runs behind whom: no place is anybody's own."""
        if self.pairs % (2 * len(self._plans)) == 0:
            self._order = self._rounds.inputs.shuffled(self.contenders)
        return self._order[::-1] if self.pairs // len(self._plans) % 2 else self._order

    def resolution(self, name: str) -> float:
        """What a child could gain by making its own harness faster, as a share of its time: a gain as small proves
        nothing. The harness's cost of a call is the slope of the null child's rounds; what it does to memory in a large
        input must be done anyhow, so no more than `_HARNESS_US` counts."""
        contender = self._contender(name)
        known = sorted((n, us) for n, us in self._rounds.overhead_us.items() if n in contender.samples)
        (few, least), (many, most) = known[0], known[-1]
        call_us = (most - least) / (many - few) if many > few else least / few
        return min(max(call_us, 0.0), _HARNESS_US) / contender.official_us()

    def _disturbed(self, done: Round) -> bool:
        """Whether a child waited for its core too long: somebody else ran on it. Nobody is timed in such a pair."""
        net_us = done.wall_us - self._rounds.overhead_us[done.plan.executions]
        return done.waited_us > _WAITED * max(net_us, 0.5 * done.wall_us)

    def _check_least(self) -> None:
        """Nobody writes faster than the memory does."""
        written = self._rounds.output_bytes
        for contender in (c for c in self.contenders if c.suspect):
            least_us = self._rounds.backend.least_us(written, self._plans[0])
            if least_us is not None and contender.official_us() < least_us:
                raise Rejection(
                    Verdict.REWARD_HACK,
                    STAGE,
                    f"{contender.official_us():.2f} us a call; its outputs alone need {least_us:.2f} us at the memory's"
                    " datasheet speed",
                    check="floor",
                )

    def measurement(self, name: str, baselines: Sequence[str], floor_us: float | None) -> Measurement:
        """The Measurement of one contender beside others."""
        one = self._contender(name)
        return Measurement(
            workload=self.workload.name,
            clock=one.clock,
            samples_us=tuple(round(us, 4) for us in one.all_samples()),
            median_us=one.official_us(),
            interval_us=one.interval_us(),
            baselines=tuple(self.baseline_time(b) for b in baselines),
            floor_us=floor_us,
            diagnostics={
                "bytes_moved": self.bytes_moved,
                "attainable_share": None if floor_us is None else round(floor_us / one.official_us(), 4),
                "single_calls": one.singly,
                "unseen_draws": one.unseen,
                "pairs": self.pairs,
                "discarded_pairs": self.discarded,
                "harness_share": round(self.resolution(name), 4),
                "round_calls": [plan.executions for plan in self._plans],
                "null_overhead_us": {str(n): round(us, 2) for n, us in self._rounds.overhead_us.items()},
                "median_us_by_round": {str(n): statistics.median(s) for n, s in one.samples.items()},
            },
        )

    def baseline_time(self, name: str) -> BaselineTime:
        return self._contender(name).baseline_time(self.workload.name)

    # ------------------------------------------------------------ inside

    def _contender(self, name: str) -> Contender:
        return next(c for c in self.contenders if c.name == name)

    def _release(self, ending: Collection[str] = ()) -> None:
        for contender in self.contenders:
            if contender.name not in ending:
                self._rounds.backend.release(contender.subject.child)

    def _warm_up(self, rules: Rules) -> None:
        """Bring every child to where it is timed from, and choose the sizes of rounds unless they are known."""
        if self._warm:
            return
        rounds = self._rounds
        first = rounds.first_plan(rules.round_us or rounds.backend.round_us)
        graph = self._prepare(first)
        if not self._plans or graph is not self._graph:
            self._graph = graph
            self._plan(rules, first)
            for plan in self._plans:
                rounds.measure_null(rounds.idle(plan.calls), plan, _NULL_ROUNDS)
        self._touch()
        self._warm = True

    def _touch(self) -> None:
        """A round that does not count: memory for a whole one is touched, and a captured graph has its size."""
        largest = self._plans[-1]
        calls = self._rounds.idle(largest.calls)
        for contender in self.contenders:
            self._rounds.run(contender, calls, largest)

    def _prepare(self, plan: RoundPlan) -> bool:
        """Whether everybody's calls are captured as a graph: one clock for all."""
        for contender in self.contenders:
            contender.clock = self._rounds.prepare(contender, plan)
        if len({contender.clock for contender in self.contenders}) > 1:
            for contender in self.contenders:
                contender.clock = self._rounds.prepare(contender, plan, graph=False)
        return all(contender.clock is Clock.GRAPH for contender in self.contenders)

    def _plan(self, rules: Rules, first: RoundPlan) -> None:
        """Choose the rounds by the fastest contender; all are prepared for the `first`."""
        rounds, round_us = self._rounds, rules.round_us or self._rounds.backend.round_us
        calls, fastest = rounds.idle(first.calls), math.inf
        for contender in self.contenders:
            for _ in range(_WARM_UP_ROUNDS):
                done = rounds.run(contender, calls, first)
                fastest = min(fastest, done.wall_us / first.executions)
        rounds.prepare_null(calls, graph=self._graph)
        rounds.measure_null(calls, first, 2)
        call_us = self._refined_us(self._net_us(fastest * first.executions, first) / first.executions, round_us)
        sizes = [rounds.planned(call_us, round_us * factor) for factor in _SIZES]
        self._plans = list(dict.fromkeys(sizes))

    def _refined_us(self, call_us: float, round_us: float) -> float:
        """The fastest contender's time of a call, from rounds that grow until they last: in a short one it drowns."""
        tried: RoundPlan | None = None
        for _ in range(_REFINEMENTS):
            plan = self._rounds.planned(call_us, round_us)
            if plan == tried:
                break
            tried, calls = plan, self._rounds.idle(plan.calls)
            wall_us = min(self._rounds.run(contender, calls, plan).wall_us for contender in self.contenders)
            self._rounds.measure_null(calls, plan, 1)
            net_us = self._net_us(wall_us, plan)
            call_us = net_us / plan.executions
            if net_us > 0.8 * round_us:
                break
        return call_us

    def _net_us(self, wall_us: float, plan: RoundPlan) -> float:
        """A round's time less its overhead, to plan with. On a busy CPU a few rounds of the null child can take many
        times what they should: believed, that would make rounds as long as they may be."""
        least = _LEAST_OF_GRAPH if self._graph else _LEAST_OF_CALLS
        return max(wall_us - self._rounds.overhead_us[plan.executions], least * wall_us)

    def _enough(self, rules: Rules) -> bool:
        """Narrow enough, or clearly worse than what it is compared with."""
        first, *others = [c.name for c in self.contenders]
        for other in others:
            logs = self._log_ratios_by_size(other, first)
            value, interval = stats.ratio_interval(stats.about_common_mean(logs))
            if interval.high < 0.95:
                return True
            if (interval.high - interval.low) / 2 > rules.narrow * value:
                return False
        return True
