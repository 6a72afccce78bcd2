"""Time contenders side by side on the judge's clock.

A round is n calls over n new input sets. A sample is its time divided by n, less the least that a round of the same
shape took for the null child, which returns ready-made outputs (`timing.overhead`). A pair is one round of every
contender on the same inputs, in a secret order and later in its reverse. Ratios come from pairs. The official time is
the largest median over the round sizes, so padding one size does not help. Every output of a Candidate's timed calls is
compared with the oracle's, and one call per round of a Baseline's.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from evaluator.device_session import DeviceSession
from evaluator.devices.base import PlainLoop, Round, RoundPlan
from evaluator.errors import ComparatorFailed
from evaluator.oracle.oracle import Oracle
from evaluator.timing import stats
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import ContenderRound
from evaluator.timing.integrity import CHECKS, CLOSE_LOOKS
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.overhead import DEVICE_CLOCK, ClockRule
from evaluator.timing.protocol import STANDARD, Rules, SamplingPlan, TimingProtocol
from evaluator.timing.rounds import Rounds, bounded, ends_after
from evaluator.timing.sampling import sample_functions
from evaluator.types import BaselineTime, Clock, DeviceKind, Measurement, Workload

_LEAST_NET_OF_GRAPH, _LEAST_NET_OF_CALLS = 0.02, 0.5  # net share of a round's wall time, when rounds are planned


@dataclass(frozen=True, slots=True)
class SampledContender:
    """A contender that is sampled, and the limits of that."""

    name: str
    plan: SamplingPlan


class Bench:
    """A timing session of several children on one Workload. All are constructed and share the oracle's parameters."""

    def __init__(
        self,
        session: DeviceSession,
        workload: Workload,
        oracle: Oracle,
        contenders: Sequence[Contender],
        *,
        protocol: TimingProtocol = STANDARD,
        first_call_s: float = 60.0,
    ) -> None:
        self.workload = workload
        self.contenders = list(contenders)
        self._protocol = protocol
        self._rounds = Rounds(session, workload, oracle, first_call_s)
        self._plans: list[RoundPlan] = []
        self._order: Sequence[str] = ()
        self._turn = 0  # pairs since the samples were last begun anew, those of contenders before `replace` included
        self._graph = False
        self._warm = False
        self._may_discard = 0
        self._racing = True
        self._unverified: list[ContenderRound] = []
        self.pairs = self.discarded = 0

    @property
    def bytes_moved(self) -> int:
        """The bytes that a call must read and write at least: its inputs, its parameters, its outputs."""
        return self._rounds.bytes_moved

    def close(self, *, ending: Collection[str] = ()) -> None:
        """Release captured CUDA graphs, except those of children that are about to exit (`ending`)."""
        self._rounds.close()
        self._release(ending)

    def run(self, rules: Rules, sampled: SampledContender | None = None) -> Mapping[str, int]:
        """Time pairs until the rules are met, then run the integrity checks. Return how often the `sampled` contender
        was seen in each function. Raise Rejection or ComparatorFailed."""
        if not self.contenders:
            return {}
        self._racing = rules.racing
        self._warm_up(rules)
        doubted = any(contender.suspect for contender in self.contenders)
        rehearse = rules.rehearse and doubted
        self._pairs(rules, rehearse_at=self._rounds.secret_below(rules.least_pairs) if rehearse else -1)
        seen: Mapping[str, int] = {}
        if sampled:
            with self._released_device():  # here, while it is prepared for such rounds
                seen = self.sample_functions(sampled.name, sampled.plan)
        session = TimedSession(
            rounds=self._rounds,
            contenders=self.contenders,
            plans=self._plans,
            log_ratios=self.official_log_ratios,
            protocol=self._protocol,
            racing=rules.racing,
            patient=rules.patient,
            time_again=lambda: self._time_again(rules),
        )
        for check in CHECKS if doubted else ():
            if rules.closely or check.name not in CLOSE_LOOKS:
                check.run(session)
        return seen

    def seems_slower(self, rules: Rules, ratio: float, most: float) -> bool:
        """Time a few pairs, and return whether the first contender's speedup over another seems to be at most `most`.

        Stop as soon as it is clearly below `ratio`, or seems to be above `most`. Raise Rejection or ComparatorFailed.
        """
        self._racing = True
        self._warm_up(rules)
        self._may_discard = rules.discarded * rules.most_pairs
        slower = clear = False
        while not clear and self.pairs < rules.most_pairs:
            self.pair()
            if self.pairs < rules.least_pairs:
                continue
            first, *others = [contender.name for contender in self.contenders]
            found = [stats.ratio_interval(self.log_ratios(other, first)) for other in others]
            slower = any(value <= most for value, _ in found)
            clear = not slower or any(interval.high < ratio for _, interval in found)
        with self._released_device():
            self._verify()
        return slower

    def _time_again(self, rules: Rules) -> None:
        self._discard_samples()
        self._turn = 0
        self._touch_memory()
        self._pairs(rules, rehearse_at=-1)

    def _pairs(self, rules: Rules, rehearse_at: int) -> None:
        self._may_discard = rules.discarded * rules.most_pairs
        end = time.monotonic() + rules.budget_s
        while self.pairs < rules.most_pairs:
            if self.pairs == rehearse_at:
                rehearse_at = -1
                self._rehearse(rules.least_pairs - self.pairs)
            self.pair()
            if self.pairs >= rules.least_pairs and (
                not rules.racing or self._is_decided(rules) or time.monotonic() > end
            ):
                break
        with self._released_device():
            self._verify()

    def _keep(self, run: ContenderRound) -> None:
        """Keep a round until enough are there to be verified together. Verify at once where the device may lack memory
        for another copy. Raise Rejection or ComparatorFailed."""
        limit_bytes = self._rounds.backend.batch_bytes
        self._unverified.append(run.copied() if run.bytes_held <= limit_bytes else run)
        if sum(one.bytes_held for one in self._unverified) > limit_bytes:
            with self._released_device():
                self._verify()

    def _verify(self) -> None:
        runs, self._unverified = self._unverified, []
        self._rounds.verifier.verify(*runs)

    def _discard_samples(self) -> None:
        for contender in self.contenders:
            contender.forget_samples()
        self._unverified.clear()
        self.pairs = self.discarded = 0

    def _rehearse(self, to_come: int) -> None:
        """Run adversarial values through the timed loop in rounds that do not count: the kinds that are neither in the
        pairs so far nor in the next `to_come` ones. A rehearsal ends after any replay, so a kernel that has learnt to
        work only in late replays has not done its work there. Of the usual calls some are compared: a kernel that skips
        enough of them to gain from it skips some of these. Raise Rejection."""
        usual, rounds = min(self._plans, key=lambda plan: plan.calls), self._rounds
        most = max(plan.replays for plan in self._plans)
        with self._released_device():
            self._verify()  # the kinds that pairs hold need no rehearsal
            fully_compared = [c for c in self.contenders if c.compared_in_full]
            fewest_replays = {c.name: c.fewest_replays for c in fully_compared}  # before these
            rehearsals = rounds.rehearsals(usual.calls, to_come, least=self._protocol.rehearsals if most > 2 else 0)
            for number, inputs in enumerate(rehearsals):
                for contender in fully_compared:
                    ends = ends_after(
                        number, rounds.secret_fraction(), most=most, fewest=fewest_replays[contender.name]
                    )
                    plan = replace(usual, replays=ends)
                    done = rounds.run(contender, inputs, plan, read=plan.calls)
                    self._keep(ContenderRound(contender, inputs, done, rounds.rehearsed_calls(inputs)))
            self._verify()

    def _released_device(self) -> AbstractContextManager[None]:
        """Let others use the device meanwhile. A confirmation keeps it to itself all the time."""
        return self._rounds.session.sharing.released() if self._racing else nullcontext()

    def sample_functions(self, name: str, plan: SamplingPlan) -> Mapping[str, int]:
        """Return how often a contender was seen in each function (`timing.sampling`). Raise Rejection."""
        return sample_functions(self._rounds, self._contender(name), self._plans[-1], plan)

    def plain_loops(self, *, without: Collection[str] = (), profile: Collection[str] = ()) -> dict[str, PlainLoop]:
        """Return the times of all calls in plain loops, after `run`, of contenders that are not named in `without`.
        Those named in `profile` also get the times of their kernels: a profiler takes seconds to start.
        Empty where a comparator's cannot be taken. Raise Rejection."""
        rounds, plan = self._rounds, self._plans[-1]
        inputs = rounds.usual_inputs(plan.calls)
        found: dict[str, PlainLoop] = {}
        rounds.start_profilers([c for c in self.contenders if c.name in profile])
        for contender in (c for c in self.contenders if c.name not in without):
            try:
                loop = rounds.run_plainly(contender, inputs, plan, profile=contender.name in profile)
            except ComparatorFailed:
                return {}
            if loop is None:
                return {}
            found[contender.name] = loop
        return found

    def leave_out(self, name: str) -> None:
        """Time the other contenders alone, from the start."""
        self._plans.clear()
        self.replace([c for c in self.contenders if c.name != name])

    def replace(self, contenders: Sequence[Contender]) -> None:
        """Time other children from now on, in rounds of the same sizes; discard earlier samples.

        Contenders that stay remain prepared.
        """
        self._release([one.name for one in self.contenders if any(one is other for other in contenders)])
        self.contenders = list(contenders)
        self._discard_samples()
        self._warm = False

    def log_ratios(self, over: str, under: str) -> list[float]:
        """Return log(time of `over` / time of `under`) for each pair."""
        return [log for logs in self._log_ratios_by_size(over, under) for log in logs]

    def _log_ratios_by_size(self, over: str, under: str) -> list[list[float]]:
        a, b = self._contender(over).adjusted_samples(), self._contender(under).adjusted_samples()
        return [[math.log(x / y) for x, y in zip(a[n], b[n], strict=True)] for n in a]

    def official_log_ratios(self, over: str, under: str) -> list[float]:
        """Return `log_ratios`, or those of the worse round size alone where the sizes disagree beyond their noise."""
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
        """Time one round of every contender on the same new inputs."""
        plan, rounds = self._plans[self.pairs % len(self._plans)], self._rounds
        inputs = rounds.new_inputs(plan.calls)
        # All outputs are read, also those that are not compared: the caches then are alike in everybody's next round.
        found = {c.name: rounds.run(c, inputs, plan, read=plan.calls) for c in self._in_order()}
        rounds.measure_null(inputs, plan, 1)
        disturbed = self.discarded < self._may_discard and any(map(self._disturbed, found.values()))
        for contender in self.contenders:
            self._keep(ContenderRound(contender, inputs, found[contender.name]))
        rule = ClockRule.of(self.contenders, self._protocol)
        for contender in () if disturbed else self.contenders:
            sample = rounds.overhead.call_us(found[contender.name], rule)
            contender.samples.setdefault(plan.executions, []).append(sample)
            contender.page_faults.append(found[contender.name].diagnostics.get("page_faults", 0))
        self.discarded += disturbed
        self.pairs += not disturbed
        self._turn += not disturbed

    def _in_order(self) -> Sequence[Contender]:
        """Return the contenders in a secret order, then in its reverse, for the round sizes in turn.

        The first contender after judge work runs slower, and order effects exist between contenders, so each size runs
        both ways: its reverse may come after `replace`, with others of the same names.
        """
        by_name = {contender.name: contender for contender in self.contenders}
        if self._turn % (2 * len(self._plans)) == 0 or set(self._order) != set(by_name):
            self._order = self._rounds.input_maker.shuffled(list(by_name))
        # Of two sizes: forwards, backwards, then backwards, forwards. So both orders are in any two pairs.
        size, lap = self._turn % len(self._plans), self._turn // len(self._plans)
        backwards = (size + lap) % 2
        return [by_name[name] for name in (reversed(self._order) if backwards else self._order)]

    def resolution(self, name: str) -> float:
        """Return the share of its time that a child could gain by making its own harness faster: a smaller gain proves
        nothing. The harness's cost of a call is the slope of the null child's rounds. Its work on the memory of a large
        input is needed anyway, so at most `TimingProtocol.harness_us` count."""
        contender = self._contender(name)
        known = sorted((n, self._rounds.overhead.harness_us(n)) for n in contender.samples)
        (few, least), (many, most) = known[0], known[-1]
        call_us = (most - least) / (many - few) if many > few else least / few
        return min(max(call_us, 0.0), self._protocol.harness_us) / contender.official_us()

    def _disturbed(self, done: Round) -> bool:
        """Return whether a child waited too long for its core because other processes ran on it. Such a pair does not
        count."""
        net_us = done.wall_us - self._rounds.overhead.wall_us[done.plan.executions]
        return done.waited_us > self._protocol.waited_share * max(net_us, 0.5 * done.wall_us)

    def measurement(self, name: str, baselines: Sequence[str], floor_us: float | None) -> Measurement:
        """Return the Measurement of one contender, with the times of others."""
        one, overhead = self._contender(name), self._rounds.overhead
        rule = ClockRule.of(self.contenders, self._protocol)
        return Measurement(
            workload=self.workload.name,
            clock=one.clock,
            samples_us=tuple(round(us, 4) for us in one.all_samples()),
            median_us=one.official_us(),
            interval_us=one.interval_us(),
            baselines=tuple(self.baseline_time(b) for b in baselines),
            floor_us=floor_us,
            adjustments=one.adjustments,
            diagnostics={
                "bytes_moved": self.bytes_moved,
                "attainable_share": None if floor_us is None else round(floor_us / one.official_us(), 4),
                "single_calls": one.single_calls,
                "own_loops": one.own_loop,
                "unchecked": dict(one.unchecked),
                "unseen_draws": one.fresh_draws,
                "pairs": self.pairs,
                "discarded_pairs": self.discarded,
                "harness_share": round(self.resolution(name), 4),
                "page_faults": {c.name: statistics.median(c.page_faults or [0]) for c in self.contenders},
                "round_calls": [plan.executions for plan in self._plans],
                "null_overhead_us": {str(n): round(us, 2) for n, us in overhead.wall_us.items()},
                "null_idle_us": {str(n): round(us, 2) for n, us in overhead.idle_us.items()},
                "overhead_share": rule.share,
                DEVICE_CLOCK: bool(rule.slack and overhead.device_us),
                "median_us_by_round": {str(n): statistics.median(s) for n, s in one.adjusted_samples().items()},
            },
        )

    def baseline_time(self, name: str) -> BaselineTime:
        return self._contender(name).baseline_time(self.workload.name)

    def _contender(self, name: str) -> Contender:
        return next(c for c in self.contenders if c.name == name)

    def _release(self, ending: Collection[str] = ()) -> None:
        self._rounds.backend.release(*(c.subject.child for c in self.contenders if c.name not in ending))

    def _warm_up(self, rules: Rules) -> None:
        """Prepare every child for timing, and choose the round sizes unless they are known."""
        if self._warm:
            return
        rounds = self._rounds
        first = rounds.first_plan(rules.round_us or rounds.backend.round_us)
        graph = self._prepare(first)
        if not self._plans or graph is not self._graph:
            self._graph = graph
            self._plan(rules, first)
            for plan in self._plans:
                rounds.measure_null(rounds.idle_inputs(plan.calls), plan, self._protocol.null_rounds)
        self._touch_memory()
        self._warm = True

    def _touch_memory(self) -> None:
        """Run a round that does not count: it touches a whole round's memory, and a captured graph gets its size."""
        largest = self._plans[-1]
        calls = self._rounds.idle_inputs(largest.calls)
        for contender in self.contenders:
            self._rounds.run(contender, calls, largest)

    def _prepare(self, plan: RoundPlan) -> bool:
        """Return whether all contenders' calls are captured as graphs. One clock serves all."""
        for contender in self.contenders:
            if contender.prepared != plan:
                contender.clock = self._rounds.prepare(contender, plan)
                contender.prepared = plan
        if len({contender.clock for contender in self.contenders}) > 1:
            for contender in self.contenders:
                contender.clock = self._rounds.prepare(contender, plan, graph=False)
                contender.prepared = None
        return all(contender.clock is Clock.GRAPH for contender in self.contenders)

    def _plan(self, rules: Rules, first: RoundPlan) -> None:
        """Choose the round sizes by the fastest contender; all are prepared for the `first` plan."""
        rounds, round_us = self._rounds, rules.round_us or self._rounds.backend.round_us
        calls, fastest, slowest = rounds.idle_inputs(first.calls), math.inf, 0.0
        for contender in self.contenders:
            tried = (rounds.run(contender, calls, first) for _ in range(self._protocol.warm_up_rounds))
            call_us = min(done.wall_us for done in tried) / first.executions
            fastest, slowest = min(fastest, call_us), max(slowest, call_us)
        rounds.prepare_null(calls, graph=self._graph)
        rounds.measure_null(calls, first, 2)
        call_us = self._net_us(fastest * first.executions, first) / first.executions
        call_us = self._refined_us(call_us, round_us, slowest)
        if rounds.backend.kind is DeviceKind.CPU:
            round_us = rules.length_us(call_us, round_us)
        sizes = [(rounds.planned(call_us, round_us * factor), factor) for factor in self._protocol.round_sizes]
        self._plans = list(dict.fromkeys(bounded(plan, slowest, factor) for plan, factor in sizes))

    def _refined_us(self, call_us: float, round_us: float, slowest_us: float) -> float:
        """Return the fastest contender's time of a call, from rounds that grow until they are long enough: in a short
        round the overhead hides it."""
        tried: RoundPlan | None = None
        for _ in range(self._protocol.refinements):
            plan = bounded(self._rounds.planned(call_us, round_us), slowest_us)
            if plan == tried:
                break
            tried, calls = plan, self._rounds.idle_inputs(plan.calls)
            wall_us = min(self._rounds.run(contender, calls, plan).wall_us for contender in self.contenders)
            self._rounds.measure_null(calls, plan, 1)
            net_us = self._net_us(wall_us, plan)
            call_us = net_us / plan.executions
            if net_us > 0.8 * round_us:
                break
        return call_us

    def _net_us(self, wall_us: float, plan: RoundPlan) -> float:
        """Return a round's time less its overhead, for planning. On a busy CPU the null child's few rounds can take
        many times what they should; taken at face value, that would plan the longest rounds."""
        least = _LEAST_NET_OF_GRAPH if self._graph else _LEAST_NET_OF_CALLS
        return max(wall_us - self._rounds.overhead.wall_us[plan.executions], least * wall_us)

    def _is_decided(self, rules: Rules) -> bool:
        """Return whether the interval is narrow enough or the first contender is clearly slower."""
        first, *others = [c.name for c in self.contenders]
        for other in others:
            logs = self._log_ratios_by_size(other, first)
            value, interval = stats.ratio_interval(stats.about_common_mean(logs))
            if interval.high < 0.95:
                return True
            if (interval.high - interval.low) / 2 > rules.narrow * value:
                return False
        return True
