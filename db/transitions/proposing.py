"""Settle Proposals and builds: create Candidates, and reject duplicates before any device time."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.packing import clean
from db.queues import JobKind, Nudge
from db.tables import counters
from db.tables.core import CandidateRow, EvaluationRow, ProposalRow, RunRow
from db.tables.queue import JobRow
from db.tables.texts import store_text
from db.transitions.access.projects import charge
from db.transitions.events import emit
from db.transitions.judging import add_evaluation, retry_internal, store_verdict
from db.transitions.records.arms import arm_stat, stat_of
from db.transitions.records.faults import count_fault
from db.transitions.reservations import release
from db.transitions.work.enqueue import enqueue_advance, enqueue_job, finish_job, retry_job
from db.transitions.work.locks import lock_job, lock_run
from db.views.rows import Job
from db.views.work import ProposalResult
from evaluator.languages import adapter
from evaluator.problem import with_line_feeds
from evaluator.schema import to_json
from evaluator.types import BuildReport, Candidate, DeviceKind, Verdict
from evolution.plans import plan_of
from evolution.tunables import Scalar, TunablesError, family_of, key_of, read_tunables
from evolution.types import Fault, ProposalOutcome, Propose, RunStatus

FRUITLESS = frozenset({ProposalOutcome.DUPLICATE, ProposalOutcome.MALFORMED, ProposalOutcome.REFUSED})
"""Outcomes without a new Candidate: no progress, and charged to `budget.candidates` if they were paid for."""


def open_proposal(s: Session, run: RunRow, decision: Propose) -> ProposalRow:
    """Open a Proposal of a locked Run, charged in advance for its Candidate."""
    stat = arm_stat(s, run.id, decision.arm)
    row = ProposalRow(
        id=new_id("prop"),
        run_id=run.id,
        number=run.proposals,
        proposer=decision.arm.proposer,
        operator=decision.arm.operator,
        model=decision.arm.model,
        variant=decision.arm.variant,
        arm_number=stat.asked,
        repeats=stat.faults_in_row if stat.fault == Fault.DUPLICATE else 0,
        island=decision.island,
        parents=list(decision.parents),
        hint=to_json(decision.hint),
        created_at=now(s),
    )
    s.add(row)
    stat.asked += 1
    run.proposals += 1
    run.spent_candidates += 1
    emit(
        s,
        run.id,
        "proposal.opened",
        proposal_id=row.id,
        number=row.number,
        proposer=row.proposer,
        operator=row.operator,
        island=row.island,
        parents=row.parents,
    )
    return row


def settle_proposal(s: Session, job: Job, result: ProposalResult) -> list[Nudge]:
    """Store the answer and its Candidate, with an Evaluation and its build Job; reject a duplicate."""
    row = lock_job(s, job)
    return [] if row is None else close_proposal(s, row, result)


def close_proposal(s: Session, row: JobRow, result: ProposalResult) -> list[Nudge]:
    """Settle the Proposal of a locked, claimed Job."""
    proposal = s.get_one(ProposalRow, row.subject_id)
    run = lock_run(s, proposal.run_id)
    finish_job(s, row)
    if proposal.outcome is not None:
        return []
    return store_proposal(s, run, proposal, result, calls=row.attempts)


def store_proposal(
    s: Session, run: RunRow, proposal: ProposalRow, result: ProposalResult, *, calls: int = 1
) -> list[Nudge]:
    """Settle an open Proposal of a locked Run."""
    _fill(s, proposal, result, calls=calls)
    proposal.settled_at = now(s)
    run.spent_tokens += result.input_tokens + result.output_tokens
    run.spent_usd += result.usd
    charge(s, run.project_id, usd=result.usd, tokens=result.input_tokens + result.output_tokens)
    outcome, nudges = result.outcome, list[Nudge]()
    if outcome is ProposalOutcome.CANDIDATE:
        outcome, nudges = _take_candidate(s, run, proposal, result)
    proposal.outcome = outcome
    if outcome is not ProposalOutcome.CANDIDATE and not (outcome in FRUITLESS and _was_paid(proposal)):
        run.spent_candidates -= 1
    if outcome in FRUITLESS:
        run.since_best += 1
    release(s, run, proposal, result.input_tokens + result.output_tokens)
    _count(s, proposal, outcome)
    if outcome is ProposalOutcome.CANDIDATE or proposal.fault is not None:
        count_fault(s, run, proposal, Fault(proposal.fault) if proposal.fault is not None else None)
    emit(
        s,
        run.id,
        "proposal.settled",
        proposal_id=proposal.id,
        number=proposal.number,
        outcome=outcome.value,
        candidate_id=proposal.candidate_id,
        detail=proposal.detail,
        fault=proposal.fault,
        usd=proposal.usd,
    )
    return nudges or enqueue_advance(s, run)


def _was_paid(proposal: ProposalRow) -> bool:
    return proposal.input_tokens + proposal.output_tokens > 0


def _take_candidate(
    s: Session, run: RunRow, proposal: ProposalRow, result: ProposalResult
) -> tuple[ProposalOutcome, list[Nudge]]:
    """Create the Candidate, or find the Run's Candidate with this source."""
    assert result.source is not None
    assert result.language is not None
    candidate = Candidate(
        source=with_line_feeds(clean(result.source)),
        language=result.language,
        parents=tuple(proposal.parents),
        proposer=proposal.proposer,
    )
    twin = s.scalars(
        select(CandidateRow.id).where(CandidateRow.run_id == run.id, CandidateRow.hash == candidate.hash)
    ).one_or_none()
    if twin is None:
        return ProposalOutcome.CANDIDATE, _create_candidate(s, run, proposal, candidate)
    proposal.candidate_id = twin
    proposal.fault, proposal.detail = Fault.DUPLICATE, f"the same source as {twin}"
    return ProposalOutcome.DUPLICATE, []


def _fill(s: Session, proposal: ProposalRow, result: ProposalResult, *, calls: int) -> None:
    proposal.prompt_parts = store_text(s, proposal.run_id, clean(result.prompt))
    proposal.prompt_template = result.prompt_template
    proposal.reply_parts = store_text(s, proposal.run_id, clean(result.reply))
    proposal.plan = clean(result.plan or plan_of(result.reply))
    proposal.detail, proposal.fault = clean(result.detail), result.fault
    proposal.answered_by = clean(result.model)
    # Added to what earlier calls can have cost, whose answers were lost (`count_lost`).
    proposal.input_tokens += result.input_tokens
    proposal.output_tokens += result.output_tokens
    proposal.usd += result.usd
    proposal.duration_s = result.duration_s
    if calls > 1:
        lost = f"begun {calls} times: {calls - 1} earlier answer(s) were lost and may have been paid for"
        proposal.detail = f"{proposal.detail} ({lost})" if proposal.detail else lost


def _count(s: Session, proposal: ProposalRow, outcome: ProposalOutcome) -> None:
    stat = stat_of(s, proposal)
    stat.settled += 1
    stat.candidates += outcome is ProposalOutcome.CANDIDATE
    stat.tokens += proposal.input_tokens + proposal.output_tokens
    stat.usd += proposal.usd
    stat.propose_s += proposal.duration_s
    stat.exhausted = stat.exhausted or outcome is ProposalOutcome.EXHAUSTED
    stat.broke = outcome is ProposalOutcome.OUT_OF_BUDGET
    failed = outcome in (ProposalOutcome.ENDPOINT_ERROR, ProposalOutcome.DEADLINE)
    stat.errors_in_row = stat.errors_in_row + 1 if failed else 0
    proposer = proposal.proposer.partition(":")[0]  # the rest of the name may be free text
    counters.count(s, "proposals", proposer, proposal.model, outcome.value)
    if proposal.usd or proposal.input_tokens or proposal.output_tokens:
        counters.count(s, "spend_usd", proposer, proposal.model, by=proposal.usd)
        counters.count(s, "tokens", proposer, proposal.model, "input", by=proposal.input_tokens)
        counters.count(s, "tokens", proposer, proposal.model, "output", by=proposal.output_tokens)


def _create_candidate(s: Session, run: RunRow, proposal: ProposalRow, candidate: Candidate) -> list[Nudge]:
    run.candidates += 1
    tunables, configuration, family = _tunables(candidate.source)
    row = CandidateRow(
        id=new_id("cand"),
        run_id=run.id,
        problem_id=run.problem_id,
        proposal_id=proposal.id,
        number=run.candidates,
        hash=candidate.hash,
        language=candidate.language,
        source=candidate.source,
        proposer=proposal.proposer,
        operator=proposal.operator,
        model=proposal.model,
        variant=proposal.variant,
        island=proposal.island,
        parents=list(proposal.parents),
        family=family,
        tunables=tunables,
        configuration=configuration,
        configuration_key=key_of(configuration) if family is not None else None,
        niche=str(adapter(candidate.language).niche(candidate.source)),
        created_at=now(s),
    )
    s.add(row)
    s.flush()
    proposal.candidate_id = row.id
    emit(
        s,
        run.id,
        "candidate.created",
        candidate_id=row.id,
        number=row.number,
        language=row.language,
        proposer=row.proposer,
        operator=row.operator,
        island=row.island,
    )
    if RunStatus(run.status).ended:
        return []
    evaluation = add_evaluation(s, run, row, kind="judge", state="building")
    if run.started_at is None:  # submitted early: `begin.start` enqueues it
        return []
    return enqueue_job(
        s, JobKind.BUILD, evaluation.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind), run=run
    )


def _tunables(source: str) -> tuple[dict[str, list[Scalar]], dict[str, Scalar], str | None]:
    """Return Tunables as JSON, the present Configuration, and the family; empty where none can be read."""
    try:
        tunables, configuration = read_tunables(source)
        family = family_of(source) if tunables else None
    except TunablesError:
        return {}, {}, None
    return {name: list(values) for name, values in tunables.items()}, configuration, family


def settle_build(s: Session, job: Job, report: BuildReport) -> list[Nudge]:
    """Store a refusal; drop a duplicate by signature; else make the judge Job ready."""
    row = lock_job(s, job)
    if row is None:
        return []
    found = s.get_one(EvaluationRow, row.subject_id)
    run = lock_run(s, found.run_id)
    candidate = s.get_one(CandidateRow, found.candidate_id)
    refused = report.evaluation
    if refused is not None and refused.verdict is Verdict.INTERNAL_ERROR and retry_internal(row):
        return retry_job(s, row, refused.reason)
    finish_job(s, row)
    if found.state != "building":
        return []
    candidate.build = to_json(report)
    candidate.signature, candidate.launches = report.signature, report.launches
    if refused is not None:
        return store_verdict(s, run, candidate, found, refused)
    twin = _twin(s, candidate)
    if twin is not None:
        return _drop_duplicate(s, run, candidate, found, twin)
    if RunStatus(run.status).ended:
        found.state, found.settled_at = "cancelled", now(s)
        return []
    found.state = "judging"
    emit(s, run.id, "candidate.built", candidate_id=candidate.id, number=candidate.number)
    return enqueue_job(
        s, JobKind.JUDGE, found.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind), run=run
    )


def _twin(s: Session, candidate: CandidateRow) -> str | None:
    """Return another Candidate of this Run with the same program, unless an internal error lost it."""
    s.flush()
    same = [CandidateRow.signature == candidate.signature]
    if candidate.launches is not None:
        same.append(CandidateRow.launches == candidate.launches)
    return s.scalars(
        select(CandidateRow.id)
        .where(
            CandidateRow.run_id == candidate.run_id,
            or_(*same),
            CandidateRow.id != candidate.id,
            or_(CandidateRow.verdict.is_(None), CandidateRow.verdict != Verdict.INTERNAL_ERROR),
        )
        .order_by(CandidateRow.number)
        .limit(1)
    ).one_or_none()


def _drop_duplicate(s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow, twin: str) -> list[Nudge]:
    found.state, found.settled_at, found.reason = "duplicate", now(s), f"the same program as {twin}"
    candidate.reason = found.reason
    proposal = s.get_one(ProposalRow, candidate.proposal_id)
    proposal.outcome, proposal.fault, proposal.detail = ProposalOutcome.DUPLICATE, Fault.DUPLICATE, found.reason
    if not _was_paid(proposal):
        run.spent_candidates -= 1
    run.since_best += 1
    count_fault(s, run, proposal, Fault.DUPLICATE)
    emit(s, run.id, "candidate.duplicate", candidate_id=candidate.id, number=candidate.number, of=twin)
    return enqueue_advance(s, run)
