"""Time a Candidate in new processes, again and again, against its comparators."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch

from evaluator.device_session import DeviceSession
from evaluator.oracle.oracle import Oracle
from evaluator.screening import libraries
from evaluator.screening.restricted import is_restricted
from evaluator.stages.candidate_children import construct
from evaluator.stages.fresh_processes import AGAIN, CANDIDATE, EAGER, FreshProcesses, ProcessSet
from evaluator.stages.time_candidate import baseline_contender, copy_floor_us
from evaluator.stages.trial import Trial
from evaluator.subject import Subject
from evaluator.timing import known_times, stats, third_opinion
from evaluator.timing.bench import Bench, SampledContender
from evaluator.timing.contender import Contender
from evaluator.timing.integrity import CLOSE_LOOKS
from evaluator.timing.overhead import DEVICE_CLOCK
from evaluator.timing.protocol import Promotion, TimingProtocol
from evaluator.timing.third_opinion import ThirdOpinion
from evaluator.types import (
    Adjustment,
    BaselineTime,
    Candidate,
    Interval,
    LibraryPolicy,
    Measurement,
    Stage,
    Workload,
)

CHAMPION = "champion"
_MORE_LOOKS = 2  # where integrity checks could not look
Tell = Callable[[Workload, int], None]
"""Is told before each repetition: the Workload, and the repetition's number from 0."""


@dataclass(slots=True)
class Spent:
    """The seconds of a confirmation by what they were spent on, for its evidence."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

    def rounded(self) -> dict[str, float]:
        return {what: round(seconds, 2) for what, seconds in self.seconds.items()}


@dataclass(slots=True)
class RepeatedTimes:
    """The repetitions of one Workload: a log ratio per repetition and comparator, and samples to show.

    `slower` has the factors by which integrity checks slowed contenders in the repetition that they looked at, number
    `looked_at`; None: none was looked at. `unchecked` are the checks that could not look there, with the reasons.
    """

    workload: Workload
    looked_at: int | None = None
    log_ratios: dict[str, list[float]] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    resolution: float = 0.0  # the largest over the Candidate's repetitions
    slower: dict[str, float] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    opinion: ThirdOpinion = field(default_factory=ThirdOpinion)
    adjustments: tuple[Adjustment, ...] = ()  # by it
    ended_early: bool = False  # since the Candidate was surely slower

    @property
    def modes(self) -> list[str]:
        return [name for name in self.rounds if name not in (CANDIDATE, AGAIN, CHAMPION)]

    @property
    def fastest(self) -> str:
        """The fastest Baseline among those that were timed in every repetition."""
        most = max(len(self.rounds[mode]) for mode in self.modes)
        every = [mode for mode in self.modes if len(self.rounds[mode]) == most]
        return min(every, key=lambda mode: statistics.median(self.rounds[mode]))

    def note(self, bench: Bench, modes: Sequence[str], floor_us: float | None) -> None:
        """Add a repetition that was timed."""
        for contender in bench.contenders:
            self.rounds.setdefault(contender.name, []).append(contender.official_us())
            if contender.name != CANDIDATE:
                logs = bench.log_ratios(contender.name, CANDIDATE)
                self.log_ratios.setdefault(contender.name, []).append(statistics.median(logs))
        self.resolution = max(self.resolution, bench.resolution(CANDIDATE))
        if len(self.measurements) == self.looked_at:
            self.note_close_look(bench)
        self.measurements.append(bench.measurement(CANDIDATE, modes, floor_us))

    def note_close_look(self, bench: Bench) -> None:
        """Note what the integrity checks found in a repetition that they looked at closely."""
        self.slower = {c.name: _slower(c) for c in bench.contenders}
        self.unchecked = next(dict(c.unchecked) for c in bench.contenders if c.name == CANDIDATE)

    def note_further_look(self, bench: Bench) -> None:
        """Note the same of processes that are no repetition, after `spread_adjustments`. Where the checks slow these
        further, all repetitions are slowed as much."""
        before = self.slower
        self.note_close_look(bench)
        self.slower = {name: max(factor, before.get(name, 1.0)) for name, factor in self.slower.items()}
        self._slow_by({name: factor / before.get(name, 1.0) for name, factor in self.slower.items()}, but=None)

    def is_unclear(self, promotion: Promotion) -> bool:
        """Return whether more repetitions would tell if the Candidate is slower here."""
        name = CHAMPION if CHAMPION in self.log_ratios else EAGER
        value, interval = stats.ratio_interval(self.log_ratios[name])
        return value < promotion.worst_workload <= interval.high

    def is_surely_below(self, ratio: float) -> bool:
        """Return whether the whole interval of the speedup over the Champion, or else the fastest Baseline, lies below
        a ratio."""
        name = CHAMPION if CHAMPION in self.log_ratios else self.fastest
        return stats.ratio_interval(self.log_ratios[name])[1].high < ratio

    def spread_adjustments(self) -> None:
        """Slow every repetition as much as the one that was looked at closely: no child knew which one that was."""
        self._slow_by(self.slower, but=self.looked_at)

    def _slow_by(self, slower: Mapping[str, float], *, but: int | None) -> None:
        own = math.log(slower.get(CANDIDATE, 1.0))
        for name, logs in self.log_ratios.items():
            more = math.log(slower.get(name, 1.0)) - own
            self.log_ratios[name] = [log if i == but else log + more for i, log in enumerate(logs)]
        for name, times in self.rounds.items():
            factor = slower.get(name, 1.0)
            self.rounds[name] = [us if i == but else us * factor for i, us in enumerate(times)]

    def official_us(self) -> dict[str, float]:
        return {name: statistics.median(times_us) for name, times_us in self.rounds.items()}

    def heed(self) -> None:
        """Lower the claims that the third opinion does not bear out."""
        fastest, official_us = self.fastest, self.official_us()
        for name in self.opinion.loops.keys() - {CANDIDATE, AGAIN}:
            before = self.log_ratios[name]
            self.log_ratios[name] = list(self.opinion.lowered(name, before, official_us))
            if name == fastest:
                self.adjustments = third_opinion.adjustment(before, self.log_ratios[name])
        for one in self.adjustments:
            self.rounds[CANDIDATE] = [one.factor * us for us in self.rounds[CANDIDATE]]

    def heed_known(self, known_us: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """Lower the claims over Baselines that were faster in an earlier session. Return both times, to show."""
        official_us = self.official_us()
        here_us = {mode: official_us[mode] for mode in self.modes}
        by_device_clock = all(one.diagnostics.get(DEVICE_CLOCK) for one in self.measurements)
        counted = known_times.counted_us(known_us, here_us, by_device_clock=by_device_clock)
        for mode, us in counted.items():
            self.log_ratios[mode] = known_times.shift(self.log_ratios[mode], here_us[mode], us)
            self.rounds[mode] = [one * us / here_us[mode] for one in self.rounds[mode]]
        return known_times.told(here_us, counted)

    def merged(self) -> Measurement:
        """Return one Measurement over all repetitions, with its Baselines."""
        parts = self.measurements
        shown = parts[self.looked_at if self.looked_at is not None and self.looked_at < len(parts) else 0]
        median, interval = _centre(self.rounds[CANDIDATE])
        baselines = []
        for mode, some in _by_mode(parts).items():
            centre, reach = _centre(self.rounds[mode])
            samples = tuple(us for one in some for us in one.samples_us)
            baselines.append(replace(some[0], median_us=centre, interval_us=reach, samples_us=samples))
        return replace(
            shown,
            samples_us=tuple(us for part in parts for us in part.samples_us),
            median_us=median,
            interval_us=interval,
            baselines=tuple(baselines),
            adjustments=tuple(one for part in parts for one in part.adjustments) + self.adjustments,
            diagnostics={"process_pairs": len(parts), **shown.diagnostics},
        )


def _by_mode(parts: Sequence[Measurement]) -> Mapping[str, Sequence[BaselineTime]]:
    """Return the times of each Baseline in the repetitions that had it, by its mode."""
    found: dict[str, list[BaselineTime]] = {}
    for one in (baseline for part in parts for baseline in part.baselines):
        found.setdefault(one.mode, []).append(one)
    return found


def _slower(contender: Contender) -> float:
    return math.prod(one.factor for one in contender.adjustments if one.check in CLOSE_LOOKS)


def _centre(samples: Sequence[float]) -> tuple[float, Interval]:
    median = statistics.median(samples)
    _, interval = stats.ratio_interval([math.log(us) for us in samples])
    return median, Interval(low=min(interval.low, median), high=max(interval.high, median))


@dataclass(frozen=True, slots=True)
class ConfirmTimer:
    """Times a Candidate against its comparators, in new processes for every repetition."""

    session: DeviceSession
    trial: Trial
    reference: Subject
    protocol: TimingProtocol
    processes: FreshProcesses
    spent: Spent
    tell: Tell
    brief: bool = False  # shown Workloads need half as many pairs

    def modes(self, workload: Workload, oracle: Oracle) -> list[str]:
        """Return the Baselines of a Workload; eager alone for a held-out one, for which nothing is compiled.

        What still compiles is waited for: it may be the fastest.
        """
        if workload.held_out:
            return [EAGER]
        if self.trial.baseline is None:
            return list(self.session.comparators.modes())
        comparators, problem = self.session.comparators, self.trial.problem
        known = [EAGER, self.trial.baseline.fastest(workload.name).mode]
        late = [m for m in self.trial.baseline.pending if comparators.works(problem, workload, m, oracle)]
        return list(dict.fromkeys([*known, *late]))

    def run(
        self,
        workload: Workload,
        repetitions: int,
        *,
        most: int = 0,
        hopeless_below: float = 0.0,
        profile: bool = False,
    ) -> RepeatedTimes:
        """Time a Workload. Raises Rejection, ComparatorFailed.

        In one secret repetition every kind of adversarial values is rehearsed, and in one the integrity checks look
        closely: no child knows in which. There are up to `most` repetitions while it is not clear whether the Candidate
        is slower here, and only the first ones where its speedup then lies below `hopeless_below` with its whole
        interval. With `profile`, kernels' own times are read at the end, for the evidence.
        """
        rehearsed = self._secret_below(repetitions)
        times = RepeatedTimes(workload, None if workload.held_out else self._secret_below(repetitions))
        with self._benched(workload) as (bench, oracle, modes, compiled):
            for repetition in range(max(repetitions, most)):
                if repetition >= repetitions and not times.is_unclear(self.protocol.promotion):
                    break
                first = repetition < self.protocol.first_pairs
                if not first and times.is_surely_below(hopeless_below):
                    times.ended_early = True
                    break
                self.tell(workload, min(repetition, repetitions - 1))
                timed = modes if first or not self._is_eager_slow(times) else [m for m in modes if m != EAGER]
                with self._turn(bench, repetition, oracle, timed, compiled):
                    closely = repetition == times.looked_at
                    self._time(bench, rehearse=repetition == rehearsed, closely=closely)
                    times.note(bench, timed, copy_floor_us(self.session.backend, bench.bytes_moved))
                    if first and not workload.held_out and not times.opinion.bears_out(times.official_us()):
                        with self.spent.on("plain_loops"):
                            times.opinion.note(bench.plain_loops(without={AGAIN}))
                    if profile and repetition == repetitions - 1 and not times.is_surely_below(1.0):
                        with self.spent.on("profile"):
                            self._profile(bench, times)
        times.spread_adjustments()
        return times

    def look_again(self, times: RepeatedTimes) -> None:
        """Look closely in further processes while a check could not look. Raises Rejection, ComparatorFailed."""
        if not times.unchecked:
            return
        with self._benched(times.workload) as (bench, oracle, modes, compiled):
            for repetition in range(_MORE_LOOKS):
                with self._turn(bench, repetition, oracle, modes, compiled):
                    self._time(bench, rehearse=False, closely=True)
                    times.note_further_look(bench)
                if not times.unchecked:
                    break

    @contextmanager
    def _benched(self, workload: Workload) -> Iterator[tuple[Bench, Oracle, Sequence[str], Sequence[Contender]]]:
        """Yield a Bench with the device held, the oracle, the Baselines' modes, and the compiled Baselines."""
        trial = self.trial
        with self.spent.on("inputs"):
            oracle = Oracle(trial.problem, self.reference, workload.sizes, trial.generator)
        with self.spent.on("baselines"):
            modes = self.modes(workload, oracle)
        with self.spent.on("inputs"):
            bench = Bench(self.session, workload, oracle, [], protocol=self.protocol, first_call_s=trial.first_call_s)
        try:
            with self.spent.on("baselines"):
                compiled = [
                    baseline_contender(self.session, trial.problem, workload, mode, oracle)
                    for mode in modes
                    if mode != EAGER
                ]
            with self.session.exclusive():
                yield bench, oracle, modes, compiled
        finally:
            bench.close()
            self.processes.rest()

    @contextmanager
    def _turn(
        self, bench: Bench, repetition: int, oracle: Oracle, modes: Sequence[str], compiled: Sequence[Contender]
    ) -> Iterator[None]:
        """Put the processes of a repetition on the Bench, and take them off at the end."""
        with ExitStack() as turn:
            with self.spent.on("processes"), self.session.sharing.released():
                subjects = turn.enter_context(self.processes.turn(repetition, eager=EAGER in modes))
                again = [one for one in bench.contenders if one.subject is subjects[AGAIN]]
                bench.replace([*self._contenders(subjects, oracle, modes, again), *compiled])
            yield
            # The Candidate's process stays as it is for the next turn.
            bench.replace([*(one for one in bench.contenders if one.name == CANDIDATE), *compiled])

    def _time(self, bench: Bench, *, rehearse: bool, closely: bool) -> None:
        """Time a repetition. Raises Rejection, ComparatorFailed."""
        brief = self.brief and not closely and not bench.workload.held_out
        rules = self.protocol.confirm_in_brief if brief else self.protocol.confirm
        rules = replace(rules, rehearse=rehearse, closely=closely)
        strict = self.trial.problem.allow_library is LibraryPolicy.FORBIDDEN
        sampled = SampledContender(CANDIDATE, self.protocol.library_sampling) if closely and strict else None
        with self.spent.on("closely" if closely else "timing"):
            seen = bench.run(rules, sampled)
        libraries.check_policy(self.trial.problem, libraries.sampled_libraries(seen), Stage.INTEGRITY)

    @staticmethod
    def _profile(bench: Bench, times: RepeatedTimes) -> None:
        """Read the times of the Candidate's and the fastest Baseline's kernels, once both were timed: nobody knows what
        a profiler leaves behind in a process."""
        shown = (CANDIDATE, times.fastest)
        others = {contender.name for contender in bench.contenders} - {*shown}
        times.opinion.note_kernels(bench.plain_loops(without=others, profile=shown))

    def _is_eager_slow(self, times: RepeatedTimes) -> bool:
        """Return True if eager is much slower than another Baseline in the repetitions so far."""
        medians = {mode: statistics.median(times.rounds[mode]) for mode in times.modes}
        others = [us for mode, us in medians.items() if mode != EAGER]
        return EAGER in medians and bool(others) and medians[EAGER] > self.protocol.much_slower * min(others)

    def _secret_below(self, bound: int) -> int:
        return int(torch.randint(bound, (1,), generator=self.trial.generator))

    def _contenders(
        self, subjects: ProcessSet, oracle: Oracle, modes: Sequence[str], again: Sequence[Contender]
    ) -> list[Contender]:
        """Construct the module in every new child of a repetition; in eager's only if it is among the `modes`. `again`
        is the Candidate's contender of the repetition before, if any."""
        problem, found = self.trial.problem, []
        for name, subject in subjects.items():
            if name == AGAIN and again:
                found += [one.as_sampled(AGAIN) for one in again]
                continue
            if name == EAGER and EAGER not in modes:
                continue
            if name == EAGER:
                subject.construct("Model", oracle.init, train=problem.train, seed=11)
                subject.load_state({**oracle.parameters, **oracle.buffers})
                found.append(Contender(EAGER, subject, suspect=False, buffers=oracle.buffers))
                continue
            self.session.freeze_while_waiting(subject)
            loaded = construct(subject, oracle, problem, Stage.CONFIRM)
            plain = is_restricted(suspects_of(self.trial)[name].source)
            found.append(
                Contender(
                    name,
                    subject,
                    suspect=True,
                    buffers=loaded.buffers,
                    parameters=loaded.parameters,
                    sampled=name == AGAIN,
                    plain=plain,
                )
            )
        return found


def suspects_of(trial: Trial) -> Mapping[str, Candidate]:
    """Return the Candidates of a confirmation's processes, by the name of the process."""
    found = {CANDIDATE: trial.candidate, AGAIN: trial.candidate}
    return found if trial.champion is None else {**found, CHAMPION: trial.champion}


def log_ratios_by_comparator(found: Sequence[RepeatedTimes]) -> dict[str, list[tuple[Workload, list[float]]]]:
    """Return the log ratios of every Baseline, of the fastest one of each Workload, and of a Champion."""
    logs: dict[str, list[tuple[Workload, list[float]]]] = {}
    for times in found:
        for name in [*times.modes, "fastest", *([CHAMPION] if CHAMPION in times.rounds else [])]:
            source = times.fastest if name == "fastest" else name
            logs.setdefault(name, []).append((times.workload, times.log_ratios[source]))
    return logs
