"""Answers of the API: judging.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.api.words import Clock, DeviceKind, Domain, Family, Language, LibraryPolicy, Precision, Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a machine. `uuid` keys its lock (GPU UUID, or the reserved CPU set)."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    kind: DeviceKind
    name: str
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The versions that a result depends on. Caches use `key`."""

    compiler: str | None = None
    cuda: str | None = None
    driver: str | None = None
    languages: str | None = None
    protocol: str = ""
    python: str
    threads: int | None = None
    torch: str
    triton: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """An integrity check's correction: max(factor * sample, floor_us), in rounds of `round_calls` calls (None: all)."""

    check: str
    factor: float = 1.0
    floor_us: float = 0.0
    round_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A two-sided confidence interval."""

    confidence: float = 0.95
    high: float
    low: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTime:
    """The time of a Baseline ("eager", "compile", ...) on a Workload. `code` holds the kernels that a compiler made."""

    clock: Clock
    code: str = ""
    interval_us: Interval
    median_us: float
    mode: str
    samples_us: tuple[float, ...] = ()
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The latency of a Candidate on one Workload, with the Baselines timed in the same session.

    Each sample is one round's raw microseconds per call, minus the null overhead. The median, its interval and ratios
    count samples with the `adjustments` in order (a confirmation: those of every pair). `floor_us` is the Roofline
    floor; `diagnostics` must agree (slopes, device events, clocks, throttle reasons) and are never official.
    """

    adjustments: tuple[Adjustment, ...] = ()
    baselines: tuple[BaselineTime, ...]
    clock: Clock
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    floor_us: float | None = None
    interval_us: Interval
    median_us: float
    samples_us: tuple[float, ...]
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A speedup (other time / Candidate's time) with its interval; above 1 the Candidate is faster.

    `against` names the comparator: "eager", "fastest", a Baseline mode, or "champion". `workload` is None for the
    weighted geometric mean over Workloads.
    """

    against: str
    interval: Interval
    value: float
    workload: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One Candidate judged once on one Device and environment.

    `stage` is the stage where it ended. `reason` is one line for a person. `evidence` is structured, for a Proposer:
    compiler message with the line, the worst element and its place, the check that fired, the cases that were checked.
    `isolation` lists protections that the machine could not enforce; it is empty if the whole cage held. `timed` is
    False if the device cannot time this language (Triton's interpreter on a CPU).
    """

    candidate_hash: str
    device: Device | None = None
    duration_s: Mapping[str, float] = field(default_factory=dict)
    environment: Environment | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    problem_hash: str
    reason: str
    resources: Mapping[str, Any] = field(default_factory=dict)
    schema_version: int = 1
    speedups: tuple[Ratio, ...] = ()
    stage: Stage
    timed: bool = True
    verdict: Verdict
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRecord:
    """An Evaluation as stored, from the moment it is ordered.

    `kind` is judge or confirm; `state` is building, judging, settled, duplicate (of another Candidate of its Run, as
    `reason` says) or cancelled. `result` is present once it is settled, unless a list leaves it out. Its Measurements
    carry their median as only sample: the samples have an address of their own.
    """

    against_id: str | None
    candidate_id: str
    created_at: str
    device_kind: DeviceKind
    device_name: str | None
    device_s: float
    id: str
    kind: str
    problem_id: str
    reason: str
    result: Evaluation | None = None
    run_id: str
    settled_at: str | None
    stage: Stage | None
    state: str
    verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One concrete set of sizes of a Problem: keyword arguments of its `get_inputs` (and `get_init_inputs`).

    `sizes` holds JSON scalars. `device` restricts the Workload to one device kind (None: every kind). `weight` is its
    share in the headline. A held-out Workload is checked, and never shown to a Proposer.
    """

    device: DeviceKind | None = None
    held_out: bool = False
    name: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A Problem as stored. `source` is left out of lists; whoever may read it also sees held-out Workloads."""

    allow_library: LibraryPolicy
    bitwise: bool
    created_at: str
    description: str
    domain: Domain
    error_budget: float | None
    family: Family = "other"
    hash: str
    id: str
    mutates: tuple[int, ...]
    name: str
    precision: Precision
    public: bool = False
    source: str | None = None
    train: bool
    workloads: tuple[Workload, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Raw timing samples in microseconds. `series` is "" for the Candidate, else "mode/clock" of a Baseline."""

    samples_us: tuple[float, ...]
    series: str
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A stored Candidate without its source. `speedup` is the newest judged headline against the fastest Baseline.

    `outdated`: that is an estimate, since a later Baseline overtook the one that it was timed against.
    `way` is how its model wrote it: "slots" of a block, "edits" of a parent, or a whole "file"; "" without a model.
    """

    configuration: Mapping[str, Any] = field(default_factory=dict)
    confirmed: bool
    created_at: str
    elite: bool = False
    hash: str
    id: str
    island: int
    language: Language
    model: str
    niche: str = ""
    number: int
    operator: str
    outdated: bool = False
    parents: tuple[str, ...]
    problem_id: str
    proposer: str
    reason: str
    run_id: str
    speedup: Ratio | None
    stage: Stage | None
    verdict: Verdict | None
    way: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The ancestors and the descendants of a Candidate."""

    ancestors: tuple[Candidate, ...]
    candidate: Candidate
    descendants: tuple[Candidate, ...]
