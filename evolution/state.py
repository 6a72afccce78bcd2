"""What the search sees of a Run: plain values, small enough to load for every decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.types import Language, Verdict
from evolution.tunables import Scalar
from evolution.types import Arm, Budget, RunConfig, Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite:
    """The fastest passed Candidate of one design: a family, or a source of its own. Ratios are against the fastest
    Baseline.

    `confirms`: how often it went to confirm. `confirmed`: it was promoted.
    """

    candidate_id: str
    number: int
    island: int
    language: Language
    speedup: float
    low: float
    confirms: int = 0
    confirmed: bool = False
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Candidates that differ in their Configuration alone. `candidate_id` is the fastest of them, at home on `island`.

    `seen` pairs Configurations with their speedups (0.0: it did not pass); `tried` holds the `tunables.key_of` of these
    and of those that are under way or were turned away.
    """

    family: str
    candidate_id: str
    island: int = 0
    tunables: Mapping[str, tuple[Scalar, ...]]
    seen: tuple[tuple[Mapping[str, Scalar], float], ...]
    tried: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A Candidate that failed in a way that a Proposer may mend."""

    candidate_id: str
    island: int
    verdict: Verdict
    repairs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedCandidate:
    """How much faster than the fastest Baseline a Candidate is on one Workload. `combined`: it is a dispatch."""

    candidate_id: str
    number: int
    speedup: float
    low: float
    high: float
    combined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadLeaders:
    """One Workload: its weight, the Run's fastest Candidate there, and who leads there of those that are no dispatch.

    `reference` is how fast the reference as it is runs against the fastest Baseline, where that is known.
    """

    weight: float
    best: RatedCandidate
    leader: RatedCandidate
    reference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmStats:
    """What an arm has cost and brought in this Run. `asked - settled` are in flight.

    `broke`: what was left of the budget did not pay for its last ask.
    """

    arm: Arm
    asked: int = 0
    settled: int = 0
    candidates: int = 0
    judged: int = 0
    passed: int = 0
    reward: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    propose_s: float = 0.0
    device_s: float = 0.0
    errors_in_row: int = 0
    exhausted: bool = False
    broke: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingChampion:
    """The Champion that stands. `own`: this Run promoted it. `speedup` was confirmed against the fastest Baseline.

    `attained` is its share of the roofline (`evolution.roofline`), None where that is not known well enough.
    """

    candidate_id: str
    hash: str
    speedup: float
    own: bool
    attained: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """A Run, as `decide` is told about it.

    `open_*` is what is in flight. `warm` are Candidates of other Runs to try.
    `families` are those that the inner search may look at. Times are seconds of device work a step; 0.0 where none has
    been seen. `baseline` says in words what the fastest Baseline is. `shares` are the Workloads, if several.
    """

    config: RunConfig
    budget: Budget
    spend: Spend
    open_proposals: int = 0
    open_judgements: int = 0
    open_confirms: int = 0
    elites: tuple[Elite, ...] = ()
    broken: tuple[Broken, ...] = ()
    arms: tuple[ArmStats, ...] = ()
    families: tuple[Family, ...] = ()
    warm_starts: tuple[str, ...] = ()
    champion: StandingChampion | None = None
    since_best: int = 0
    judged_any: bool = False
    judge_s: float = 0.0
    confirm_s: float = 0.0
    baseline: str = ""
    shares: Mapping[str, WorkloadLeaders] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        return self.open_proposals + self.open_judgements

    @property
    def idle(self) -> bool:
        return self.in_flight + self.open_confirms == 0
