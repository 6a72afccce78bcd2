"""The schema of Run, Budget, Proposal and Decision: frozen dataclasses of the standard library alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from evaluator.types import DeviceKind


class RunStatus(StrEnum):
    QUEUED = "queued"
    ADMITTING = "admitting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        return self in (RunStatus.FINISHED, RunStatus.CANCELLED, RunStatus.FAILED)


class RunKind(StrEnum):
    """The purpose of a Run: a search, or the judgement of one submitted Candidate."""

    OPTIMISE = "optimise"
    JUDGE = "judge"


class EndReason(StrEnum):
    """The reason for the end of a Run."""

    BUDGET = "budget"
    TARGET_REACHED = "target_reached"
    ROOFLINE_REACHED = "roofline_reached"
    STAGNATED = "stagnated"
    NO_IMPROVEMENT = "no_improvement"
    PROBLEM_REFUSED = "problem_refused"
    NO_PROPOSER = "no_proposer"
    CANCELLED = "cancelled"
    INTERNAL_ERROR = "internal_error"


class Operator(StrEnum):
    """The way to change a parent. `create` makes a Candidate from the reference alone."""

    CREATE = "create"
    REWRITE = "rewrite"
    DIFF = "diff"
    CROSSOVER = "crossover"
    REPAIR = "repair"
    TUNE = "tune"


class ProposalOutcome(StrEnum):
    """The outcome of one attempt to make a Candidate."""

    CANDIDATE = "candidate"
    DUPLICATE = "duplicate"
    MALFORMED = "malformed"
    REFUSED = "refused"
    ENDPOINT_ERROR = "endpoint_error"
    DEADLINE = "deadline"
    EXHAUSTED = "exhausted"
    OUT_OF_BUDGET = "out_of_budget"
    CANCELLED = "cancelled"


class Fault(StrEnum):
    """The cause of an answer without a new Candidate: of the model and its settings (`of_model`), or of one answer."""

    THOUGHTS_ONLY = "thoughts_only"
    REFUSED = "refused"
    FILTERED = "filtered"
    TOOL_CALL = "tool_call"
    EMPTY = "empty"
    CUT_OFF = "cut_off"
    NO_CODE = "no_code"
    NOT_PYTHON = "not_python"
    BAD_EDITS = "bad_edits"
    BAD_SLOTS = "bad_slots"
    TOO_LONG = "too_long"
    DUPLICATE = "duplicate"

    @property
    def of_model(self) -> bool:
        """True if another question would meet with the same answer."""
        return self in (Fault.THOUGHTS_ONLY, Fault.REFUSED, Fault.FILTERED, Fault.TOOL_CALL, Fault.EMPTY)

    @property
    def words(self) -> str:
        """The fault in an answer, for a person."""
        return _FAULTS[self]


_FAULTS = {
    Fault.THOUGHTS_ONLY: "it only thought",
    Fault.REFUSED: "it refused",
    Fault.FILTERED: "a content filter stopped it",
    Fault.TOOL_CALL: "it called a tool instead of answering",
    Fault.EMPTY: "its answers were empty",
    Fault.CUT_OFF: "its answers were cut off",
    Fault.NO_CODE: "its answers had no kernel in them",
    Fault.NOT_PYTHON: "its answers were not Python",
    Fault.BAD_EDITS: "its edits did not fit",
    Fault.BAD_SLOTS: "what it wrote did not fit the slots",
    Fault.TOO_LONG: "its answers were too long",
    Fault.DUPLICATE: "it repeated itself",
}

Number = TypeVar("Number", int, float)


def _sum(limit: Number | None, more: Number | None) -> Number | None:
    return limit if limit is None or more is None else limit + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Hard limits of a Run; None means no limit of that kind. Checked before spending."""

    candidates: int | None = None
    tokens: int | None = None
    usd: float | None = None
    device_s: float | None = None
    wall_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("candidates", "tokens", "usd", "device_s", "wall_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"budget {name} must be a positive number")
        if all(getattr(self, name) is None for name in ("candidates", "tokens", "usd", "device_s", "wall_s")):
            raise ValueError("a Budget sets at least one limit")

    def plus(self, more: Budget) -> Budget:
        """Return this Budget with `more` added; a limit that is absent here stays absent."""
        return Budget(
            candidates=_sum(self.candidates, more.candidates),
            tokens=_sum(self.tokens, more.tokens),
            usd=_sum(self.usd, more.usd),
            device_s=_sum(self.device_s, more.device_s),
            wall_s=_sum(self.wall_s, more.wall_s),
        )

    def used_up(self, spend: Spend) -> tuple[str, ...]:
        """Return the names of the limits that a Spend has reached."""
        names = ("candidates", "tokens", "usd", "device_s", "wall_s")
        return tuple(n for n in names if getattr(self, n) is not None and getattr(spend, n) >= getattr(self, n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """The resources that a Run has used so far. Waiting in a queue does not count in `device_s`."""

    candidates: int = 0
    tokens: int = 0
    usd: float = 0.0
    device_s: float = 0.0
    wall_s: float = 0.0


MAX_SEEDS = 64
"""Maximum number of kernels that a Run starts from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The search settings of a Run. `proposers` are names from the operator's settings, "synthesiser" or "replay:FILE".

    `seed` drives every random choice. `target_speedup` ends the Run once a confirmed Champion reaches it.
    `roofline_share` ends it once the Champion attains that share of the memory roofline (see `evolution.roofline`).
    The search starts from `seed_sources`, which are texts, and `seed_candidates`, which are ids of stored Candidates
    of the same Problem.
    """

    proposers: tuple[str, ...] = ("synthesiser",)
    seed: int = 0
    islands: int = 2
    in_flight: int = 4
    target_speedup: float | None = None
    roofline_share: float | None = 0.95
    stagnation_candidates: int = 40
    seed_sources: tuple[str, ...] = ()
    seed_candidates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.islands <= 64:
            raise ValueError("islands must be between 1 and 64")
        if not 1 <= self.in_flight <= 256:
            raise ValueError("in_flight must be between 1 and 256")
        target = self.target_speedup
        if target is not None and not (math.isfinite(target) and target > 0):
            raise ValueError("target_speedup must be a positive number")
        share = self.roofline_share
        if share is not None and not 0 < share <= 1:
            raise ValueError("roofline_share must be above 0 and at most 1")
        if len(self.seed_sources) + len(self.seed_candidates) > MAX_SEEDS:
            raise ValueError(f"a Run starts from at most {MAX_SEEDS} seeds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One optimisation of a Problem on a Device kind. `champion_id` and `best_id` are Candidates' ids.

    `forked_from` is the Run that gave this one its first Candidates.
    """

    id: str
    project_id: str
    problem_id: str
    device_kind: DeviceKind
    status: RunStatus
    budget: Budget
    config: RunConfig
    spend: Spend
    kind: RunKind = RunKind.OPTIMISE
    end_reason: EndReason | None = None
    message: str = ""
    champion_id: str | None = None
    best_id: str | None = None
    forked_from: str | None = None
    last_seq: int = 0
    created_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None

    def __post_init__(self) -> None:
        if self.status.ended != (self.end_reason is not None):
            raise ValueError("a Run has an end reason exactly when it has ended")


SLOTS = "slots"
"""The variant that asks for the slots of a building block (`synthesis.slots`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One choice of the bandit: a Proposer, its model, an Operator, and a prompt variant.

    A model is asked for a whole file, for edits of a parent (`diff`), or for a block's slots (the variant SLOTS).
    """

    proposer: str
    operator: Operator
    model: str = ""
    variant: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One attempt to make a Candidate: prompt, reply, tokens, cost, outcome. `outcome` is None until it has ended.

    `plan` is what a model said it would do, before its code.
    `fault` is the cause if a model's answer was of no use.
    """

    id: str
    run_id: str
    number: int
    arm: Arm
    island: int
    parents: tuple[str, ...] = ()
    outcome: ProposalOutcome | None = None
    candidate_id: str | None = None
    prompt: str = ""
    prompt_template: str = ""
    reply: str = ""
    plan: str = ""
    detail: str = ""
    fault: Fault | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    duration_s: float = 0.0
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """Decision: ask `arm` for a Candidate from `parents` (Candidates' ids) on `island`."""

    arm: Arm
    island: int
    parents: tuple[str, ...] = ()
    hint: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """Decision: confirm a Candidate against the Champion, in new processes, with new seeds and held-out Workloads."""

    candidate_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retime:
    """Decision: judge a Candidate again, since a later Baseline is faster than the one that it was judged against.

    `first`: before judgements that wait, since it is the Run's best.
    """

    candidate_id: str
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Decision: end the Run."""

    reason: EndReason
    message: str


Decision = Propose | Confirm | Retime | Finish
