"""The timing stage: time a Candidate against Baselines on every shown Workload."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.device_session import DeviceSession
from evaluator.devices.base import DeviceBackend
from evaluator.errors import ChildFault, Rejection
from evaluator.oracle.oracle import Oracle
from evaluator.screening.restricted import is_restricted
from evaluator.stages.candidate_children import construct
from evaluator.stages.trial import Trial
from evaluator.subject import Subject
from evaluator.timing import known_times, stats
from evaluator.timing.bench import Bench, SampledContender
from evaluator.timing.contender import Contender
from evaluator.timing.overhead import DEVICE_CLOCK
from evaluator.timing.protocol import TimingProtocol
from evaluator.timing.speedups import speedups
from evaluator.types import LibraryPolicy, Measurement, Problem, Ratio, Stage, Verdict, Workload


@dataclass(slots=True)
class Times:
    """The times of a Candidate. `ran` counts samples of its process by library or function."""

    measurements: list[Measurement] = field(default_factory=list)
    logs: dict[str, list[tuple[Workload, list[float]]]] = field(default_factory=dict)
    ran: Mapping[str, int] = field(default_factory=dict)

    def ratios(self) -> list[Ratio]:
        return speedups(self.logs, len(self.measurements))

    def unchecked(self) -> dict[str, Mapping[str, str]]:
        """Return the checks that could not look, by Workload, with the reasons."""
        return {one.workload: one.diagnostics["unchecked"] for one in self.measurements}

    def add(self, session: DeviceSession, trial: Trial, workload: Workload, bench: Bench, modes: Sequence[str]) -> None:
        """Add a Workload's measurement and ratios."""
        one = bench.measurement("candidate", modes, copy_floor_us(session.backend, bench.bytes_moved))
        here_us = {baseline.mode: baseline.median_us for baseline in one.baselines}
        by_device_clock = bool(one.diagnostics.get(DEVICE_CLOCK))
        known = trial.known_us(workload, one.clock)
        counted = known_times.counted_us(known, here_us, by_device_clock=by_device_clock)
        if counted:
            noted = {**one.diagnostics, known_times.NAME: known_times.told(here_us, counted)}
            one = replace(one, baselines=known_times.counting(one.baselines, counted), diagnostics=noted)
        self.measurements.append(one)
        fastest = min(modes, key=lambda mode: counted.get(mode, here_us[mode]))
        for against in dict.fromkeys([*modes, "fastest"]):
            over = fastest if against == "fastest" else against
            logs = bench.official_log_ratios(over, "candidate")
            shifted = known_times.shift(logs, here_us[over], counted.get(over))
            self.logs.setdefault(against, []).append((workload, shifted))


def time_candidate(
    session: DeviceSession, trial: Trial, subject: Subject, reference: Subject, protocol: TimingProtocol
) -> Times:
    """Time a constructed Candidate on every shown Workload. Raises Rejection, ComparatorFailed.

    On every Workload adversarial values are rehearsed and integrity checks look closely. A `quick` trial does that on
    one secret Workload alone, and does not wait where others use the cores: a confirmation does it on each, patiently.
    The Candidate's process is sampled from the secret Workload on, until it was seen at work.
    """
    times = Times()
    secret = _secret_workload(trial)
    strict = trial.problem.allow_library is LibraryPolicy.FORBIDDEN
    for number, workload in enumerate(trial.shown):
        ending = ["candidate"] if workload is trial.shown[-1] else []
        with _benched(session, trial, workload, subject, reference, protocol, ending) as (bench, modes):
            plan = protocol.library_sampling if strict else protocol.brief_sampling
            sampled = None if number < secret or times.ran else SampledContender("candidate", plan)
            rules = protocol.judge
            if trial.quick:
                looked = workload is trial.shown[secret]
                rules = replace(
                    rules, rehearse=rules.rehearse and looked, closely=rules.closely and looked, patient=False
                )
            times.ran = bench.run(rules, sampled) or times.ran
            times.add(session, trial, workload, bench, modes)
    return times


def _secret_workload(trial: Trial) -> int:
    """Draw the number of a shown Workload. Those with long calls are drawn less often: looking costs more there."""
    times_us = [trial.baseline.fastest(w.name).median_us if trial.baseline else 1.0 for w in trial.shown]
    shares = torch.tensor([1 / math.sqrt(us) for us in times_us], dtype=torch.float64)
    return int(torch.multinomial(shares, 1, generator=trial.generator))


def look(
    session: DeviceSession, trial: Trial, subject: Subject, reference: Subject, protocol: TimingProtocol
) -> Times | None:
    """Return the times of a few pairs of a Candidate that is clearly slower and seems faster on no Workload, or None.

    It is compared with the fastest Baseline, or with the best Candidate so far by the speedup over that Baseline.
    Raises Rejection, ComparatorFailed.
    """
    times, logs = Times(), list[list[float]]()
    for workload in trial.shown:
        best = trial.best_speedup(workload)
        with _benched(session, trial, workload, subject, reference, protocol) as (bench, modes):
            if not bench.seems_slower(protocol.look, protocol.clearly_slower * best, protocol.seems_faster * best):
                return None
            times.add(session, trial, workload, bench, modes)
            (mode,) = modes  # a Candidate is judged quickly against a known Baseline alone
            counted = times.measurements[-1].baselines[0].median_us
            over = known_times.shift(bench.log_ratios(mode, "candidate"), bench.baseline_time(mode).median_us, counted)
            logs.append([log - math.log(best) for log in over])
    _, interval = stats.combine(logs, [workload.weight for workload in trial.shown])
    return times if interval.high < protocol.clearly_slower else None


@contextmanager
def _benched(
    session: DeviceSession,
    trial: Trial,
    workload: Workload,
    subject: Subject,
    reference: Subject,
    protocol: TimingProtocol,
    ending: Sequence[str] = (),
) -> Iterator[tuple[Bench, list[str]]]:
    """Yield a Bench of a Candidate and its comparators on a Workload, and their modes, with the device held."""
    modes = _modes(session, trial, workload)
    with session.shared():
        oracle = Oracle(trial.problem, reference, workload.sizes, trial.generator)
        loaded = construct(subject, oracle, trial.problem, Stage.TIMING)
    plain = is_restricted(trial.candidate.source)
    contenders = [
        Contender("candidate", subject, suspect=True, buffers=loaded.buffers, parameters=loaded.parameters, plain=plain)
    ]
    # The device is not held here: a new comparator may compile for a minute.
    contenders += [baseline_contender(session, trial.problem, workload, mode, oracle) for mode in modes]
    with session.shared():
        bench = Bench(session, workload, oracle, contenders, protocol=protocol, first_call_s=trial.first_call_s)
    try:
        with session.exclusive():
            yield bench, modes
    finally:
        with session.shared():
            bench.close(ending=ending)


def _modes(session: DeviceSession, trial: Trial, workload: Workload) -> list[str]:
    """Return the fastest Baseline so far, or all where none is known."""
    return [trial.baseline.fastest(workload.name).mode] if trial.baseline else list(session.comparators.modes())


def prepare_comparators(session: DeviceSession, trial: Trial, reference: Subject) -> None:
    """Compile the Baselines that timing will need while the Candidate is built and checked. Raises Rejection."""
    for workload in trial.shown:
        modes = _modes(session, trial, workload)
        if not all(session.comparators.is_begun(trial.problem, workload, mode) for mode in modes):
            try:
                with session.shared():
                    oracle = Oracle(trial.problem, reference, workload.sizes, trial.generator)
                    session.comparators.prepare(trial.problem, workload, modes, oracle)
            except (ChildFault, LayoutError) as fault:
                raise Rejection(
                    Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference fails on {workload.name}: {fault}"
                ) from fault


def baseline_contender(
    session: DeviceSession, problem: Problem, workload: Workload, mode: str, oracle: Oracle
) -> Contender:
    """Return a Baseline on a Workload, with the oracle's parameters, ready to be timed."""
    return Contender(
        mode, session.comparators.get(problem, workload, mode, oracle), suspect=False, buffers=oracle.buffers
    )


def copy_floor_us(backend: DeviceBackend, bytes_moved: int) -> float | None:
    """Return the time that a plain copy takes to move so many bytes: for reports, never for refusals."""
    rate = backend.copy_rate_gbs()
    return None if rate is None else bytes_moved / (rate * 1000)
