"""Values that the repositories return: frozen, read-only copies of rows. Timestamps are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.screening.family import Family
from evaluator.types import Device, DeviceKind, Environment, Evaluation, Language, Problem, Ratio, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    """A stored Problem. `problem` carries the source and the Workloads."""

    id: str
    project_id: str
    name: str
    description: str
    hash: str
    problem: Problem
    created_at: str
    public: bool = False
    family: Family = Family.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A stored Candidate without its source. `speedup` is the newest judged headline against the fastest Baseline.

    `outdated`: that is an estimate, since a later Baseline overtook the one that it was timed against.
    `way` is how its model wrote it: "slots" of a block, "edits" of a parent, or a whole "file"; "" without a model.
    """

    id: str
    run_id: str
    problem_id: str
    number: int
    hash: str
    language: Language
    proposer: str
    model: str
    operator: str
    island: int
    parents: tuple[str, ...]
    verdict: Verdict | None
    stage: Stage | None
    reason: str
    speedup: Ratio | None
    confirmed: bool
    created_at: str
    way: str = ""
    niche: str = ""
    elite: bool = False
    outdated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardEntry:
    """The Champion of a Problem on a Device kind, with its confirmed speedups.

    `roofline` is how near it comes to the Roofline floor, 0 to 1: the geometric mean over Workloads of floor / time.
    """

    problem_id: str
    problem_name: str
    device_kind: DeviceKind
    device_name: str
    run_id: str
    candidate_id: str
    language: Language
    proposer: str
    model: str
    fastest_baseline: str
    against_fastest: Ratio
    against_eager: Ratio | None
    confirmed_at: str
    id: str = ""
    roofline: float | None = None
    family: Family = Family.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """One event of a Run. `seq` is gap-free per Run and in commit order; it is the SSE id."""

    run_id: str
    seq: int
    kind: str
    created_at: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One claimed row of work. `lease` identifies this claim: a settlement under another lease changes nothing."""

    id: str
    kind: str
    queue: str
    run_id: str | None
    subject_id: str
    project_id: str
    attempt: int
    lease: str
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One Job, waiting (`ready`, `held`) or `claimed` by `worker`. `error` is of its last attempt."""

    id: str
    kind: str
    queue: str
    state: str
    attempts: int
    worker: str | None
    error: str
    created_at: str
    claimed_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """A registered device. `isolation` lists the protections that its machine cannot enforce.

    `observed` is a worker's last reading, at `observed_at`: `utilisation_percent`, clocks in MHz (`sm_mhz`,
    `memory_mhz`, `cpu_mhz`), `temperature_c`, `power_w`, `throttle`; unavailable readings are left out.
    """

    device: Device
    environment: Environment
    queue: str
    isolation: tuple[str, ...]
    seen_at: str
    observed: Mapping[str, Any] = field(default_factory=dict)
    observed_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHour:
    """The work of a device in the hour of UTC that begins at `hour`. `observed`: clocks, temperature."""

    hour: str
    busy_s: float
    evaluations: int
    observed: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The recent use of similar Runs, per Candidate and per confirmation, as (least, median, most)."""

    runs: int
    device_s: tuple[float, float, float]
    wall_s: tuple[float, float, float]
    usd: tuple[float, float, float]
    confirm_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationView:
    """A settled Evaluation with its id. `kind` is judge or confirm; Measurements carry their median as only sample."""

    id: str
    candidate_id: str
    kind: str
    evaluation: Evaluation
    created_at: str
    settled_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRecord:
    """An Evaluation as stored, from the moment it is ordered.

    `kind` is judge or confirm; `state` is building, judging, settled, duplicate (of another Candidate of its Run, as
    `reason` says) or cancelled. `result` is present once it is settled, unless a list leaves it out. Its Measurements
    carry their median as only sample: the samples have an address of their own.
    """

    id: str
    candidate_id: str
    run_id: str
    problem_id: str
    device_kind: DeviceKind
    kind: str
    state: str
    against_id: str | None
    verdict: Verdict | None
    stage: Stage | None
    reason: str
    device_name: str | None
    device_s: float
    created_at: str
    settled_at: str | None
    result: Evaluation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Raw timing samples in microseconds. `series` is "" for the Candidate, else "mode/clock" of a Baseline."""

    workload: str
    series: str
    samples_us: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """A moment at which a Run's best changed, with the use so far. `confirmed`: a Champion was promoted.

    Other speedups are over the Baselines that had compiled by then; where a later one was faster, an estimate follows.
    """

    candidate_id: str
    number: int
    speedup: Ratio
    confirmed: bool
    evaluations: int
    device_s: float
    wall_s: float
    usd: float
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of a Run's Evaluations that ended at a stage with a Verdict. `kind` is judge or confirm."""

    kind: str
    stage: Stage
    verdict: Verdict
    number: int
    device_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmView:
    """The requests, costs and results of one arm of a Run. `reward` is the bandit's."""

    proposer: str
    operator: str
    model: str
    variant: str
    asked: int
    settled: int
    candidates: int
    judged: int
    passed: int
    reward: float
    tokens: int
    usd: float
    propose_s: float
    device_s: float
    exhausted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChampionView:
    """A promotion: the confirmed speedups of a Candidate on a device. `standing`: no later one has replaced it."""

    candidate_id: str
    run_id: str
    device_kind: str
    device_name: str
    standing: bool
    against_fastest: Ratio
    against_eager: Ratio | None
    fastest_baseline: str
    promoted_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """The answer to a POST with an Idempotency-Key. `fingerprint` hashes its request."""

    fingerprint: str
    status: int
    location: str | None
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue over all projects. `oldest_ready_s` is how long the oldest Job has been ready."""

    queue: str
    ready: int
    held: int
    claimed: int
    oldest_ready_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A worker process, once for every Job that it holds; `kind` is null where it holds none.

    Its heartbeat moves `lease_until` and `seen_at`.
    """

    worker: str
    queue: str
    kind: str | None
    claimed_at: str | None
    lease_until: str | None
    seen_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRow:
    """The spend under a name: a model's, a Proposer's or a project's. `runs` and `passed` where they are known."""

    name: str
    runs: int | None
    proposals: int
    candidates: int
    passed: int | None
    tokens: int
    usd: float
    device_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookView:
    """The state of a Run's webhook: waiting, ready, delivered or failed. `status` is the last answer's."""

    url: str
    state: str
    attempts: int
    status: int | None
    error: str
    settled_at: str | None
