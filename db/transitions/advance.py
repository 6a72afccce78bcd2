"""The next step of a search: decisions become rows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.clock import frozen_time
from db.queues import JobKind, Nudge
from db.repositories import search
from db.tables.core import CandidateRow, EvaluationRow, ProposalRow, RunRow
from db.tables.queue import JobRow
from db.transitions.admission import ATTEMPTS
from db.transitions.events import emit
from db.transitions.judging import enqueue_confirmation, retime, why_not
from db.transitions.proposing import open_proposal
from db.transitions.work.enqueue import end_run, enqueue_job, finish_job
from db.transitions.work.failures import LOST
from db.transitions.work.locks import lock_job, lock_run
from db.views.rows import Job
from evaluator.schema import from_json
from evaluator.types import DeviceKind, Evaluation, content_hash
from evolution.decisions import candidate_ids, describe
from evolution.search import decide
from evolution.state import SearchState
from evolution.types import Confirm, Decision, EndReason, Finish, Operator, Propose, Retime, RunStatus


def generator(seed: int, decision: int) -> Random:
    """Return the random generator of one decision: the same for a seed and decision number on every machine."""
    return Random(int(content_hash("decision", str(seed), str(decision)), 16))


def advance(s: Session, job: Job) -> list[Nudge]:
    """Load the Run's state, ask evolution.decide, write Proposals, Evaluations, Jobs and events; settle the Job.

    The Run's row stays locked throughout, which serialises its decisions.
    """
    row = lock_job(s, job)
    if row is None:
        return []
    run = lock_run(s, row.subject_id)
    finish_job(s, row)
    if run.status != RunStatus.RUNNING:
        return []
    with frozen_time(s):
        return _decide(s, run)


def _decide(s: Session, run: RunRow) -> list[Nudge]:
    arms = search.arm_rows(s, run.id)  # kept referenced, so that counting does not read them again
    state = search.load(s, run, arms)
    decisions = decide(state, generator(state.config.seed, run.decisions))
    if not decisions:
        return []
    said = describe(decisions, _numbers(s, decisions))
    emit(s, run.id, "search.decided", number=run.decisions, decisions=said)
    run.decisions += 1
    nudges: list[Nudge] = []
    for decision in decisions:
        match decision:
            case Propose():
                nudges += _propose(s, run, decision)
            case Confirm():
                nudges += _confirm(s, run, decision, state)
            case Retime(candidate_id=id, first=first):
                nudges += retime(s, run, s.get_one(CandidateRow, id), first=first)
            case Finish(reason=EndReason.NO_PROPOSER) if fault := _machine_fault(s, run):
                end_run(s, run, RunStatus.FAILED, EndReason.INTERNAL_ERROR, fault)
            case Finish(reason=EndReason.NO_PROPOSER):
                detail = _last_detail(s, run)
                message = f"{decision.message} The last answer: {detail}" if detail else decision.message
                end_run(s, run, RunStatus.FAILED, decision.reason, message)
            case Finish(reason=EndReason.NO_IMPROVEMENT):
                end_run(s, run, RunStatus.FINISHED, decision.reason, decision.message + refusals(s, run.id))
            case Finish():
                end_run(s, run, RunStatus.FINISHED, decision.reason, decision.message)
    return sorted(set(nudges))


def refusals(s: Session, run_id: str) -> str:
    """Return in words why each confirmed Candidate of a Run was not promoted; "" if none was confirmed."""
    query = (
        select(EvaluationRow, CandidateRow.number)
        .join(CandidateRow, CandidateRow.id == EvaluationRow.candidate_id)
        .where(EvaluationRow.run_id == run_id, EvaluationRow.kind == "confirm", EvaluationRow.state == "settled")
        .order_by(EvaluationRow.id)
    )
    said = []
    for row, number in s.execute(query):
        found = from_json(Evaluation, row.body) if row.body is not None else None
        ratio = found.speedup("fastest") if found is not None else None
        words = "; ".join(why_not(found)) if found is not None else ""
        at = f", confirmed at {ratio.value:.2f}x" if ratio is not None else ""
        said.append(f"#{number}{at}: {words or row.reason}")
    return f" Not promoted: {'. '.join(said)}." if said else ""


def _machine_fault(s: Session, run: RunRow) -> str:
    """Return in words why Proposals' steps were given up, which is never their Proposer's fault; "" if none was."""
    given_up = JobRow.kind == JobKind.PROPOSE, JobRow.state == "dead", JobRow.attempts >= ATTEMPTS
    errors = s.scalars(select(JobRow.error).where(JobRow.run_id == run.id, *given_up).order_by(JobRow.id.desc())).all()
    if not errors:
        return ""
    last = errors[0] or ""
    if LOST not in last:
        return f"No candidate could be made on this machine, see `warpwright doctor`: {last}"
    lost = sum(LOST in (error or "") for error in errors)
    return f"No candidate could be made: all workers of {lost} proposal{'s' * (lost != 1)} were lost. The last: {last}"


def _last_detail(s: Session, run: RunRow) -> str:
    """Return the outcome's detail of the newest settled Proposal."""
    details = select(ProposalRow.detail).where(ProposalRow.run_id == run.id, ProposalRow.outcome.is_not(None))
    return s.scalars(details.order_by(ProposalRow.number.desc()).limit(1)).first() or ""


def _numbers(s: Session, decisions: Sequence[Decision]) -> dict[str, int]:
    """Return the numbers of the Candidates in decisions: ids differ between a Run and its replay."""
    ids = {id for decision in decisions for id in candidate_ids(decision)}
    if not ids:
        return {}
    return dict(s.execute(select(CandidateRow.id, CandidateRow.number).where(CandidateRow.id.in_(ids))).all())


def _propose(s: Session, run: RunRow, decision: Propose) -> list[Nudge]:
    row = open_proposal(s, run, decision)
    if decision.arm.operator is Operator.REPAIR:
        s.execute(
            update(CandidateRow)
            .where(CandidateRow.id.in_(decision.parents))
            .values(repairs=CandidateRow.repairs + 1)
            .execution_options(synchronize_session="fetch")
        )
    return enqueue_job(
        s, JobKind.PROPOSE, row.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind), run=run
    )


def _confirm(s: Session, run: RunRow, decision: Confirm, state: SearchState) -> list[Nudge]:
    candidate = s.get_one(CandidateRow, decision.candidate_id)
    emit(s, run.id, "candidate.confirming", candidate_id=candidate.id, number=candidate.number)
    against = state.champion.candidate_id if state.champion is not None else None
    return enqueue_confirmation(s, run, candidate, against)
