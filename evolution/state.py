"""The search's view of a Run: plain values, small enough to load for every decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.types import Language, Verdict
from evolution.tunables import Scalar
from evolution.types import Arm, Budget, Fault, RunConfig, Spend


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite:
    """The fastest passed Candidate of one design: a family, or a source without Tunables.

    Speedups are against the fastest Baseline; an `outdated` one is an estimate, since a later Baseline overtook the one
    that it was timed against. `retimed` means that it was ordered since then to be timed again.
    `confirms` counts its confirmations; `confirmed` means that it was promoted; `repaired` that it is a broken kernel's
    repair.
    """

    candidate_id: str
    number: int
    island: int
    language: Language
    speedup: float
    low: float
    confirms: int = 0
    confirmed: bool = False
    outdated: bool = False
    retimed: bool = False
    repaired: bool = False
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Candidates that differ only in their Configuration. `candidate_id` is the fastest of them; `island` is its own.

    `seen` pairs Configurations with their speedups (0.0: it did not pass). `tried` holds the `tunables.key_of` of
    these, of those in flight, and of refused ones.
    """

    family: str
    candidate_id: str
    island: int = 0
    tunables: Mapping[str, tuple[Scalar, ...]]
    seen: tuple[tuple[Mapping[str, Scalar], float], ...]
    tried: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A Candidate that failed in a way that a Proposer may repair."""

    candidate_id: str
    island: int
    verdict: Verdict
    repairs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedCandidate:
    """The speedup of a Candidate over the fastest Baseline on one Workload. `combined` marks a dispatch."""

    candidate_id: str
    number: int
    speedup: float
    low: float
    high: float
    combined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadLeaders:
    """The fastest Candidates of one Workload.

    `best` is the Run's best over all Workloads; `leader` is the fastest on this one that is not a dispatch.
    `reference` is the speedup of the unchanged reference over the fastest Baseline, if it is known.
    """

    weight: float
    best: RatedCandidate
    leader: RatedCandidate
    reference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmStats:
    """The costs and results of an arm in this Run. `asked - settled` are in flight.

    `broke` means that the remaining budget did not cover its last call. `faults_in_row` counts its last answers that
    were of no use for the same cause, `fault`.
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
    fault: Fault | None = None
    faults_in_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingChampion:
    """The current Champion. `own`: this Run promoted it. `speedup` was confirmed against the fastest Baseline.

    `attained` is its share of the roofline (`evolution.roofline`), None if that is not known reliably.
    """

    candidate_id: str
    hash: str
    speedup: float
    own: bool
    attained: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestSoFar:
    """The speedup of a Run's fastest passed Candidate, which need not be an elite; an `outdated` one is an estimate."""

    speedup: float
    outdated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """The state of a Run, as the input of `decide`.

    `open_*` count work in flight. `warm_starts` are Candidates of other Runs to try. `families` are those that the
    inner search may try. `judge_s` and `confirm_s` are mean device-seconds per step; 0.0 before the first. `baseline`
    names the fastest Baseline in words. `slots`: the device's usual language has blocks that models may fill. `shares`
    holds the leaders by Workload, if there are several Workloads.
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
    best: BestSoFar | None = None
    since_best: int = 0
    judged_any: bool = False
    judge_s: float = 0.0
    confirm_s: float = 0.0
    baseline: str = ""
    slots: bool = False
    shares: Mapping[str, WorkloadLeaders] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        return self.open_proposals + self.open_judgements

    @property
    def idle(self) -> bool:
        return self.in_flight + self.open_confirms == 0
