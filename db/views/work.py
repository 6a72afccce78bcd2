"""The input and output of a worker for a claimed Job: frozen dataclasses, complete and self-contained.

`db.repositories.work.jobs.payload(s, job)` makes one of these inside a short read transaction. The worker then works
without the database and settles through `db.transitions.work.settle` in another transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.types import (
    BaselineReport,
    BuildReport,
    Candidate,
    DeviceKind,
    Language,
    Measurement,
    Problem,
    Ratio,
    Stage,
    Verdict,
    WorkloadFacts,
)
from evolution.lessons import TunableLesson
from evolution.types import Arm, Fault, ProposalOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitWork:
    """Try the reference: `evaluator serve` op `admit`."""

    problem: Problem
    device_kind: DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """A Problem that is being admitted, and the Proposers that a Run will ask about it then."""

    problem: Problem
    device_kind: DeviceKind
    proposers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineWork:
    """Time the Baselines of an admitted Problem: op `baseline`. `baseline` has those that were ready earlier.

    `patient` allows to wait a little for others: no Job waits for the device.
    """

    problem: Problem
    device_kind: DeviceKind
    baseline: BaselineReport | None = None
    patient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildWork:
    """Screen and compile a Candidate without a device: op `build`."""

    evaluation_id: str
    candidate_id: str
    problem: Problem
    candidate: Candidate
    device_kind: DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWork:
    """Judge a Candidate against the fastest Baseline: op `judge`. `build` is the build stage's report, if it ran.

    In a search, a `quick` judgement ends what is clearly slower before most checks: than the Baseline, or than the
    `best` speedups over it so far, by Workload.
    """

    evaluation_id: str
    candidate_id: str
    problem: Problem
    candidate: Candidate
    device_kind: DeviceKind
    baseline: BaselineReport | None
    build: BuildReport | None = None
    quick: bool = False
    best: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmWork:
    """Confirm a Candidate against the Champion that stood when this was ordered (None: there was none)."""

    evaluation_id: str
    candidate_id: str
    problem: Problem
    candidate: Candidate
    device_kind: DeviceKind
    baseline: BaselineReport | None
    champion_id: str | None
    champion: Candidate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A model call about to be made: the most tokens that it can take, and their prices.

    `spent_*` is the cost of earlier calls of the same Proposal.
    """

    input_tokens: int
    output_tokens: int
    least_output_tokens: int
    usd_per_input: float = 0.0
    usd_per_output: float = 0.0
    spent_tokens: int = 0
    spent_usd: float = 0.0

    def usd(self, output_tokens: int) -> float:
        """Return the cost with so many tokens of reply."""
        return self.input_tokens * self.usd_per_input + output_tokens * self.usd_per_output

    def affordable(self, tokens_left: int | None, usd_left: float | None) -> int:
        """Return the reply tokens that the remaining budget pays for (None: no limit); 0 where too few to use."""
        most = self.output_tokens
        if tokens_left is not None:
            most = min(most, tokens_left - self.spent_tokens - self.input_tokens)
        if usd_left is not None:
            rest = usd_left - self.spent_usd - self.usd(0)
            most = 0 if rest < 0 else min(most, int(rest / self.usd_per_output)) if self.usd_per_output else most
        return most if most >= self.least_output_tokens else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentView:
    """A parent as a Proposer sees it: source, the judge's result, and its speed.

    `measurements` and `ratios` are of one judging, its newest, so they agree with each other; the times in a Baseline
    report are of another session. Where it is `outdated`, `ratios` are estimates over a later Baseline. `relatives` are
    the other judged configurations of its Tunables. `plan` is what its model said it would do.
    """

    candidate_id: str
    source: str
    language: Language
    verdict: Verdict | None
    stage: Stage | None
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    outdated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)
    relatives: tuple[Approach, ...] = ()
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A frequent failure of earlier Candidates of this Run: `count` had the same verdict and reason."""

    verdict: Verdict
    stage: Stage
    reason: str
    language: Language
    candidate_id: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Approach:
    """A Candidate of the Run: the first words of its reply, and its result.

    `verdict` is None while it is being judged.

    `measurements` and `ratios` (against "fastest") are of its newest judging; there are none unless it PASSED. Where it
    is `outdated`, `ratios` are estimates over a later Baseline.
    """

    number: int
    language: Language
    niche: str
    verdict: Verdict | None
    stage: Stage
    reason: str
    said: str = ""
    speedup: float | None = None
    measurements: tuple[Measurement, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    outdated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The Champion of a similar Problem, found by an earlier Run."""

    problem: str
    speedup: float
    language: Language
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """A lesson of an earlier Run on such a device, on a similar Problem or on this one.

    `sizes` are those of its Workload, empty where it holds over all of them.
    """

    problem: str
    sizes: Mapping[str, Any]
    lesson: TunableLesson


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeWork:
    """Make one Candidate.

    `arm` is the proposer and its task. `arm_number` counts this arm's Proposals in this Run from 0, so an arm that
    enumerates designs (the synthesiser, a replay) answers with design `arm_number` and EXHAUSTED beyond its last.
    `hint` comes from the search: {"configuration": {...}} for TUNE (apply it to `parents[0].source` with
    `evolution.tunables.apply_configuration`). `given` is a source to use unchanged (arm.proposer == "seed").
    `tried` holds the source hashes (`Candidate.hash`) and build signatures of this Run's newest Candidates.
    `repeats` is how many answers in a row of this arm were known to repeat earlier ones when it was asked.
    `calls` is how many times this Proposal has been begun, this time included: above 1, an earlier answer was lost.
    `varied` are the nearby sizes that every Candidate is checked on too ("rows=31"). `approaches` are earlier answers
    of this Run, failures included: the fastest and the newest, fastest first.
    `problem` is whole; a Proposer's prompt must leave out held-out Workloads.
    """

    proposal_id: str
    run_id: str
    number: int
    arm: Arm
    arm_number: int
    island: int
    run_seed: int
    problem: Problem
    device_kind: DeviceKind
    device_name: str
    device_facts: Mapping[str, Any]
    facts: tuple[WorkloadFacts, ...]
    baseline: BaselineReport | None
    parents: tuple[ParentView, ...]
    lessons: tuple[Lesson, ...]
    tried: tuple[str, ...]
    varied: tuple[str, ...] = ()
    approaches: tuple[Approach, ...] = ()
    remembered: Remembered | None = None
    precedents: tuple[Precedent, ...] = ()
    hint: Mapping[str, Any] = field(default_factory=dict)
    given: str | None = None
    repeats: int = 0
    calls: int = 1
    tokens_left: int | None = None
    usd_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookWork:
    """Post `body` to `url`, signed with `secret`: the Run has ended."""

    run_id: str
    url: str
    secret: str = field(repr=False)
    delivery_id: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The outcome of a webhook: `status` is the last answer's, `error` one line for a person where it failed."""

    delivered: bool
    attempts: int
    status: int | None = None
    error: str = ""


WorkItem = AdmitWork | BaselineWork | BuildWork | JudgeWork | ConfirmWork | ProposeWork | WebhookWork


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalResult:
    """The answer of a Proposer. `source` and `language` are given exactly when `outcome` is CANDIDATE.

    `plan` is what a model said it would do. `model` is the name that the endpoint reports; `detail` is one line for a
    person (why malformed, which error), and `fault` the cause of a model's answer of no use.
    `usd` and the token counts are the cost of this Proposal in all, lost calls included where known.
    """

    outcome: ProposalOutcome
    source: str | None = None
    language: Language | None = None
    prompt: str = ""
    prompt_template: str = ""
    reply: str = ""
    plan: str = ""
    detail: str = ""
    fault: Fault | None = None
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    duration_s: float = 0.0

    def __post_init__(self) -> None:
        given = self.source is not None and self.language is not None
        if given != (self.outcome is ProposalOutcome.CANDIDATE):
            raise ValueError("a ProposalResult has a source and a language exactly when its outcome is CANDIDATE")
