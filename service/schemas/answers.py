"""Answers of the API that are not one of the shared types: frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from db.transitions.work.bundles import Taken
from db.views.rows import (
    ArmView,
    CandidateView,
    ChampionView,
    DeviceView,
    EvaluationRecord,
    EventView,
    JobView,
    LeaderboardEntry,
    Milestone,
    ProblemView,
    QueueView,
    Samples,
    SpendRow,
    Tally,
    WorkerView,
)
from evaluator.screening.family import Family
from evaluator.types import DeviceKind, Domain, LibraryPolicy, Precision, Ratio, Workload
from evolution.types import Arm, Proposal, ProposalOutcome, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemAnswer:
    """A Problem as stored. `source` is left out of lists; whoever may read it also sees held-out Workloads."""

    id: str
    name: str
    description: str
    hash: str
    workloads: tuple[Workload, ...]
    domain: Domain
    precision: Precision
    error_budget: float | None
    allow_library: LibraryPolicy
    train: bool
    bitwise: bool
    mutates: tuple[int, ...]
    created_at: str
    public: bool = False
    family: Family = Family.OTHER
    source: str | None = None

    @classmethod
    def of(cls, view: ProblemView, *, source: bool) -> ProblemAnswer:
        problem = view.problem
        return cls(
            id=view.id,
            name=view.name,
            description=view.description,
            hash=view.hash,
            workloads=problem.workloads,
            domain=problem.domain,
            precision=problem.precision,
            error_budget=problem.error_budget,
            allow_library=problem.allow_library,
            train=problem.train,
            bitwise=problem.bitwise,
            mutates=problem.mutates,
            created_at=view.created_at,
            public=view.public,
            family=view.family,
            source=problem.source if source else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalSummary:
    """A Proposal without its prompt and reply, as lists show it."""

    id: str
    run_id: str
    number: int
    arm: Arm
    island: int
    parents: tuple[str, ...]
    outcome: ProposalOutcome | None
    candidate_id: str | None
    detail: str
    input_tokens: int
    output_tokens: int
    usd: float
    duration_s: float
    created_at: str

    @classmethod
    def of(cls, proposal: Proposal) -> ProposalSummary:
        return cls(**{name: getattr(proposal, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage:
    items: tuple[ProblemAnswer, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary(Run):
    """A Run as lists show it: with its Problem's name, and the speedup of its champion, else of its best Candidate.

    `outdated`: that is an estimate, since a later Baseline overtook the one that it was timed against.
    """

    problem_name: str
    speedup: Ratio | None
    confirmed: bool
    outdated: bool = False

    @classmethod
    def of(cls, run: Run, problem_name: str, champion: ChampionView | None, best: CandidateView | None) -> RunSummary:
        speedup = champion.against_fastest if champion else best.speedup if best else None
        values = {name: getattr(run, name) for name in Run.__dataclass_fields__}
        return cls(
            **values,
            problem_name=problem_name,
            speedup=speedup,
            confirmed=champion is not None,
            outdated=champion is None and best is not None and best.outdated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    items: tuple[RunSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Events in order. `next_cursor` is the `after` of the next page, null where there is no more for now."""

    items: tuple[EventView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePage:
    items: tuple[CandidateView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    items: tuple[ProposalSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPage:
    items: tuple[EvaluationRecord, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesPage:
    items: tuple[Samples, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardPage:
    items: tuple[LeaderboardEntry, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePage:
    items: tuple[DeviceView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    """A group of Champions in numbers. Speedups are over the fastest Baseline."""

    group: str
    champions: int
    problems: int
    geometric_mean_speedup: float
    median_speedup: float
    best_speedup: float
    best_candidate_id: str
    median_roofline: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """An available language model. A dollar budget is refused for one that is not `priced`."""

    name: str
    model: str
    usd_per_million_input: float | None
    usd_per_million_output: float | None
    priced: bool
    context_tokens: int
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleAnswer:
    """Work given away in a file, whose content is `text`. At `expires_at` it goes back to its queue."""

    id: str
    device_kind: DeviceKind
    tasks: int
    created_at: str
    expires_at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedAnswer:
    """The fate of an answer: settled; returned to the queue; gone (late or repeated) or refused, with no effect."""

    job_id: str
    outcome: Taken
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedAnswer:
    """The number of tasks that were returned to their queue."""

    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageAnswer:
    """The ancestors and the descendants of a Candidate."""

    candidate: CandidateView
    ancestors: tuple[CandidateView, ...]
    descendants: tuple[CandidateView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPage:
    items: tuple[SummaryAnswer, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChampionPage:
    items: tuple[ChampionView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    items: tuple[QueueView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPage:
    items: tuple[WorkerView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPage:
    items: tuple[ModelAnswer, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendPage:
    items: tuple[SpendRow, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestonePage:
    items: tuple[Milestone, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyPage:
    items: tuple[Tally, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPage:
    items: tuple[ArmView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    items: tuple[JobView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`status` is "ok" or "unavailable"; `checks` gives "ok" or the fault of each dependency."""

    status: str
    checks: Mapping[str, Any]
