"""Define the schema of Problem, Candidate and Evaluation: frozen dataclasses of the standard library alone.

Importing this module never loads torch. FastAPI serves these types, the database stores their JSON (with
`schema_version`). Impossible states fail at construction. Sizes are bytes; hashes are lower-case SHA-256 hex.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from evaluator.units import time_text

SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """The terminal status of an Evaluation."""

    PASSED = "PASSED"
    INVALID_SUBMISSION = "INVALID_SUBMISSION"
    POLICY_VIOLATION = "POLICY_VIOLATION"
    BUILD_ERROR = "BUILD_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_VALUES = "INCORRECT_VALUES"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    REWARD_HACK = "REWARD_HACK"
    INVALID_REFERENCE = "INVALID_REFERENCE"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class Stage(StrEnum):
    """The stage at which an Evaluation is or ended, in order of cost."""

    SCREEN = "screen"
    BUILD = "build"
    CORRECTNESS = "correctness"
    TIMING = "timing"
    INTEGRITY = "integrity"
    PROFILE = "profile"
    CONFIRM = "confirm"


class Language(StrEnum):  # each has a folder in evaluator/languages/, and a line in the table there
    """The language that a Candidate is written in."""

    TORCH = "torch"
    CPP = "cpp"
    TRITON = "triton"
    CUDA = "cuda"
    HELION = "helion"
    CUTILE = "cutile"


class Domain(StrEnum):
    """The inputs on which a Candidate must be right."""

    DECLARED = "declared"
    GENERAL = "general"


class Precision(StrEnum):
    """The accuracy that the user requires; anything but `exact` is the user's explicit choice."""

    EXACT = "exact"
    TF32 = "tf32"
    HALF_ACCUMULATE = "half-accumulate"
    BUDGET = "budget"


class LibraryPolicy(StrEnum):
    """Permission for a Candidate to call vendor libraries (cuBLAS, oneDNN, at::addmm, ...)."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"


class DeviceKind(StrEnum):
    CPU = "cpu"
    CUDA = "cuda"


class Clock(StrEnum):
    """The way that calls were issued while timed: replayed as a CUDA graph, or called one by one."""

    GRAPH = "graph"
    CALLS = "calls"


def content_hash(*parts: str) -> str:
    """Return SHA-256 over length-prefixed UTF-8 parts: no two lists of parts collide by concatenation."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")  # invalid text needs an identity, too
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One concrete set of sizes of a Problem: keyword arguments of its `get_inputs` (and `get_init_inputs`).

    `sizes` holds JSON scalars. `device` restricts the Workload to one device kind (None: every kind). `weight` is its
    share in the headline. A held-out Workload is checked, and never shown to a Proposer.
    """

    name: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    device: DeviceKind | None = None
    held_out: bool = False

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 100:
            raise ValueError("a Workload's name has 1 to 100 characters")
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"Workload {self.name}: weight must be a positive number")
        for key, value in self.sizes.items():
            if not (isinstance(value, str) or (isinstance(value, int | float) and abs(value) < math.inf)):
                raise ValueError(f"Workload {self.name}: size {key!r} must be a finite number, a string or a boolean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A reference, its input recipes and its precision policy. Immutable; `hash` identifies it.

    `source` is a Python module with `class Model(nn.Module)`, `get_inputs` and `get_init_inputs`. It is read statically
    (`evaluator.problem.read_problem`) and executed only inside a cage. `error_budget` is a relative error, given
    exactly when `precision` is `budget`. `mutates` lists positions of inputs that the reference changes in place.
    """

    name: str
    source: str
    workloads: tuple[Workload, ...]
    domain: Domain = Domain.DECLARED
    precision: Precision = Precision.EXACT
    error_budget: float | None = None
    allow_library: LibraryPolicy = LibraryPolicy.ALLOWED
    train: bool = False
    bitwise: bool = False
    mutates: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.workloads:
            raise ValueError("a Problem needs at least one Workload")
        names = [w.name for w in self.workloads]
        if len(set(names)) != len(names):
            raise ValueError(f"Workload names must differ: {names}")
        if (self.precision is Precision.BUDGET) != (self.error_budget is not None):
            raise ValueError("error_budget is given exactly when precision is 'budget'")

    @property
    def hash(self) -> str:
        """Return the identity of the Problem: its source and everything that changes the right answer, not its name."""
        workloads = [[w.name, dict(w.sizes), w.weight, w.device and str(w.device), w.held_out] for w in self.workloads]
        policy = {
            "workloads": workloads,
            "domain": str(self.domain),
            "precision": str(self.precision),
            "error_budget": self.error_budget,
            "allow_library": str(self.allow_library),
            "train": self.train,
            "bitwise": self.bitwise,
            "mutates": list(self.mutates),
        }
        return content_hash("problem", str(SCHEMA_VERSION), self.source, canonical_json(policy))

    def workloads_for(self, kind: DeviceKind) -> tuple[Workload, ...]:
        """Return the Workloads that apply to a device kind, held-out ones included."""
        return tuple(w for w in self.workloads if w.device in (None, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Immutable source plus language. Parents and Proposer are lineage and do not enter the hash."""

    source: str
    language: Language
    parents: tuple[str, ...] = ()
    proposer: str = "unknown"

    @property
    def hash(self) -> str:
        return content_hash("candidate", str(self.language), self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a machine. `uuid` keys its lock (GPU UUID, or the reserved CPU set)."""

    kind: DeviceKind
    name: str
    uuid: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The versions that a result depends on. Caches use `key`."""

    python: str
    torch: str
    triton: str | None = None
    cuda: str | None = None
    driver: str | None = None
    compiler: str | None = None
    protocol: str = ""  # the hash of the TimingProtocol
    threads: int | None = None  # of a CPU, that the reference, Baselines and Candidates have
    languages: str | None = None  # the optional packages of languages: "helion 1.5.1"

    @property
    def key(self) -> str:
        return content_hash("environment", *(str(getattr(self, one.name) or "") for one in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A two-sided confidence interval."""

    low: float
    high: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not (self.low <= self.high):
            raise ValueError(f"interval ends out of order: {self.low}, {self.high}")
        if not 0 < self.confidence < 1:
            raise ValueError("confidence lies between 0 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTime:
    """The time of a Baseline ("eager", "compile", ...) on a Workload. `code` holds the kernels that a compiler made."""

    mode: str
    workload: str
    clock: Clock
    median_us: float
    interval_us: Interval
    samples_us: tuple[float, ...] = ()
    code: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.median_us) and self.median_us > 0):
            raise ValueError("a time is positive and finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A speedup (other time / Candidate's time) with its interval; above 1 the Candidate is faster.

    `against` names the comparator: "eager", "fastest", a Baseline mode, or "champion". `workload` is None for the
    weighted geometric mean over Workloads.
    """

    against: str
    value: float
    interval: Interval
    workload: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise ValueError("a ratio is positive and finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """An integrity check's correction: max(factor * sample, floor_us), in rounds of `round_calls` calls (None: all)."""

    check: str
    factor: float = 1.0
    floor_us: float = 0.0
    round_calls: int | None = None

    def __post_init__(self) -> None:
        if not (1 <= self.factor < math.inf and 0 <= self.floor_us < math.inf):
            raise ValueError("an adjustment never makes a time shorter")

    def __str__(self) -> str:
        parts = (self.factor > 1) * [f"{self.factor:.3g} times longer"]
        return f"{self.check}: " + ", ".join(parts + bool(self.floor_us) * [f"at least {time_text(self.floor_us)}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The latency of a Candidate on one Workload, with the Baselines timed in the same session.

    Each sample is one round's raw microseconds per call, minus the null overhead. The median, its interval and ratios
    count samples with the `adjustments` in order (a confirmation: those of every pair). `floor_us` is the Roofline
    floor; `diagnostics` must agree (slopes, device events, clocks, throttle reasons) and are never official.
    """

    workload: str
    clock: Clock
    samples_us: tuple[float, ...]
    median_us: float
    interval_us: Interval
    baselines: tuple[BaselineTime, ...]
    floor_us: float | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    adjustments: tuple[Adjustment, ...] = ()

    def __post_init__(self) -> None:
        if not self.samples_us:
            raise ValueError("a Measurement has samples")
        if not (math.isfinite(self.median_us) and self.median_us > 0):
            raise ValueError("a time is positive and finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One Candidate judged once on one Device and environment.

    `stage` is the stage where it ended. `reason` is one line for a person. `evidence` is structured, for a Proposer:
    compiler message with the line, the worst element and its place, the check that fired, the cases that were checked.
    `isolation` lists protections that the machine could not enforce; it is empty if the whole cage held. `timed` is
    False if the device cannot time this language (Triton's interpreter on a CPU).
    """

    verdict: Verdict
    stage: Stage
    reason: str
    problem_hash: str
    candidate_hash: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    speedups: tuple[Ratio, ...] = ()
    isolation: tuple[str, ...] = ()
    device: Device | None = None
    environment: Environment | None = None
    libraries: tuple[str, ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    timed: bool = True
    duration_s: Mapping[str, float] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.PASSED and (self.measurements or self.speedups):
            raise ValueError(f"no latency without PASSED (verdict is {self.verdict})")
        if self.verdict is Verdict.PASSED and not self.evidence:
            raise ValueError("no PASSED without evidence")
        if self.verdict is Verdict.PASSED and (self.device is None or self.environment is None):
            raise ValueError("no PASSED without the device and the environment it was seen on")
        if self.verdict is Verdict.PASSED and bool(self.measurements) != self.timed:
            raise ValueError("a timed PASSED has measurements; an untimed one has none")
        if not self.reason:
            raise ValueError("every Verdict has a reason")

    def speedup(self, against: str) -> Ratio | None:
        """Return the headline Ratio (all Workloads) against a comparator, or None if it was not measured."""
        return next((r for r in self.speedups if r.against == against and r.workload is None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """Facts about one Workload from admission. A Proposer may see them unless the Workload is held out.

    `bytes_moved`: of inputs, outputs, and what a call reads of parameters and buffers. `flops`: of a call, as torch
    counts. `matmul_gflops`: the rate of a large matrix product of the inputs' type here. `constructor` and `arguments`
    (of a call): JSON trees with numbered tensors. `weights`: parameters and buffers, such as "scale float32 [64]".
    """

    workload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bytes_moved: int
    flops: int | None = None
    floor_us: float | None = None
    matmul_gflops: float | None = None
    constructor: Any = None
    arguments: Any = None
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The decision on a Problem for a device kind: verdict PASSED, or INVALID_REFERENCE with the reason."""

    problem_hash: str
    verdict: Verdict
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[WorkloadFacts, ...] = ()
    device: Device | None = None
    environment: Environment | None = None
    isolation: tuple[str, ...] = ()
    duration_s: Mapping[str, float] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if self.verdict not in (Verdict.PASSED, Verdict.INVALID_REFERENCE, Verdict.INTERNAL_ERROR):
            raise ValueError("an Admission is PASSED, INVALID_REFERENCE or INTERNAL_ERROR")
        if self.verdict is Verdict.PASSED and not self.facts:
            raise ValueError("an accepted Problem has facts about its Workloads")

    @property
    def accepted(self) -> bool:
        return self.verdict is Verdict.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineReport:
    """The Baselines of a Problem on one device. `skipped` tells why a mode has no times; `pending` ones compile."""

    problem_hash: str
    device: Device
    environment: Environment
    times: tuple[BaselineTime, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    duration_s: float = 0.0
    schema_version: int = SCHEMA_VERSION

    def fastest(self, workload: str) -> BaselineTime:
        """Return the fastest Baseline on a Workload. Raise KeyError for a Workload without times."""
        times = [t for t in self.times if t.workload == workload]
        if not times:
            raise KeyError(workload)
        return min(times, key=lambda t: t.median_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """The result of the build stage without a device. `evaluation` is set exactly if the Candidate is already refused.

    `signature` hashes the normalised source, `launches` the launches (compiled code, grid, arguments) where known."""

    candidate_hash: str
    signature: str
    launches: str | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    duration_s: float = 0.0
    schema_version: int = SCHEMA_VERSION
