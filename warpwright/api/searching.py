"""Answers of the API: searching.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.api.judging import Ratio
from warpwright.api.words import (
    DeviceKind,
    EndReason,
    Fault,
    Operator,
    ProposalOutcome,
    RunKind,
    RunStatus,
    Stage,
    Verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Hard limits of a Run; None means no limit of that kind. Checked before spending."""

    candidates: int | None = None
    device_s: float | None = None
    tokens: int | None = None
    usd: float | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The search settings of a Run. `proposers` are names from the operator's settings, "synthesiser" or "replay:FILE".

    `seed` drives every random choice. `target_speedup` ends the Run once a confirmed Champion reaches it.
    `roofline_share` ends it once the Champion attains that share of the memory roofline (see `evolution.roofline`).
    The search starts from `seed_sources`, which are texts, and `seed_candidates`, which are ids of stored Candidates
    of the same Problem.
    """

    in_flight: int = 4
    islands: int = 2
    proposers: tuple[str, ...] = ()
    roofline_share: float | None = 0.95
    seed: int = 0
    seed_candidates: tuple[str, ...] = ()
    seed_sources: tuple[str, ...] = ()
    stagnation_candidates: int = 40
    target_speedup: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """The resources that a Run has used so far. Waiting in a queue does not count in `device_s`."""

    candidates: int = 0
    device_s: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One optimisation of a Problem on a Device kind. `champion_id` and `best_id` are Candidates' ids.

    `forked_from` is the Run that gave this one its first Candidates.
    """

    best_id: str | None = None
    budget: Budget
    champion_id: str | None = None
    config: RunConfig
    created_at: str = ""
    device_kind: DeviceKind
    end_reason: EndReason | None = None
    ended_at: str | None = None
    forked_from: str | None = None
    id: str
    kind: RunKind = "optimise"
    last_seq: int = 0
    message: str = ""
    problem_id: str
    project_id: str
    spend: Spend
    started_at: str | None = None
    status: RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A Run as lists show it: with its Problem's name, and the speedup of its champion, else of its best Candidate.

    `outdated`: that is an estimate, since a later Baseline overtook the one that it was timed against.
    """

    best_id: str | None = None
    budget: Budget
    champion_id: str | None = None
    config: RunConfig
    confirmed: bool
    created_at: str = ""
    device_kind: DeviceKind
    end_reason: EndReason | None = None
    ended_at: str | None = None
    forked_from: str | None = None
    id: str
    kind: RunKind = "optimise"
    last_seq: int = 0
    message: str = ""
    outdated: bool = False
    problem_id: str
    problem_name: str
    project_id: str
    speedup: Ratio | None
    spend: Spend
    started_at: str | None = None
    status: RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One choice of the bandit: a Proposer, its model, an Operator, and a prompt variant.

    A model is asked for a whole file, for edits of a parent (`diff`), or for a block's slots (the variant SLOTS).
    """

    model: str = ""
    operator: Operator
    proposer: str
    variant: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One attempt to make a Candidate: prompt, reply, tokens, cost, outcome. `outcome` is None until it has ended.

    `plan` is what a model said it would do, before its code.
    `fault` is the cause if a model's answer was of no use.
    """

    arm: Arm
    candidate_id: str | None = None
    created_at: str = ""
    detail: str = ""
    duration_s: float = 0.0
    fault: Fault | None = None
    id: str
    input_tokens: int = 0
    island: int
    number: int
    outcome: ProposalOutcome | None = None
    output_tokens: int = 0
    parents: tuple[str, ...] = ()
    plan: str = ""
    prompt: str = ""
    prompt_template: str = ""
    reply: str = ""
    run_id: str
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalSummary:
    """A Proposal without its prompt and reply, as lists show it."""

    arm: Arm
    candidate_id: str | None
    created_at: str
    detail: str
    duration_s: float
    id: str
    input_tokens: int
    island: int
    number: int
    outcome: ProposalOutcome | None
    output_tokens: int
    parents: tuple[str, ...]
    run_id: str
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a Run. `seq` is gap-free per Run and in commit order; it is the SSE id."""

    created_at: str
    data: Mapping[str, Any] = field(default_factory=dict)
    kind: str
    run_id: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """A moment at which a Run's best changed, with the use so far. `confirmed`: a Champion was promoted.

    Other speedups are over the Baselines that had compiled by then; where a later one was faster, an estimate follows.
    """

    at: str
    candidate_id: str
    confirmed: bool
    device_s: float
    evaluations: int
    number: int
    speedup: Ratio
    usd: float
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of a Run's Evaluations that ended at a stage with a Verdict. `kind` is judge or confirm."""

    device_s: float
    kind: str
    number: int
    stage: Stage
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmStatistics:
    """The requests, costs and results of one arm of a Run. `reward` is the bandit's."""

    asked: int
    candidates: int
    device_s: float
    exhausted: bool
    judged: int
    model: str
    operator: str
    passed: int
    propose_s: float
    proposer: str
    reward: float
    settled: int
    tokens: int
    usd: float
    variant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One Job, waiting (`ready`, `held`) or `claimed` by `worker`. `error` is of its last attempt."""

    attempts: int
    claimed_at: str | None
    created_at: str
    error: str
    id: str
    kind: str
    queue: str
    state: str
    worker: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """The state of a Run's webhook: waiting, ready, delivered or failed. `status` is the last answer's."""

    attempts: int
    error: str
    settled_at: str | None
    state: str
    status: int | None
    url: str
