"""Failed steps: retried up to the cap after an internal error, else stored with their outcome."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.packing import clean
from db.queues import JobKind, Nudge
from db.tables.core import CandidateRow, EvaluationRow, ProblemRow, RunRow
from db.tables.queue import JobRow
from db.transitions.admission import ATTEMPTS, give_up_admitting
from db.transitions.judging import close_evaluation
from db.transitions.proposing import close_proposal
from db.transitions.reservations import charge_lost, count_lost
from db.transitions.work.enqueue import end_run, finish_job, retry_job
from db.transitions.work.locks import lock_job, lock_run
from db.transitions.work.webhooks import close_webhook
from db.views.rows import Job
from db.views.work import Delivery, ProposalResult
from evaluator.types import Evaluation, Stage, Verdict
from evolution.types import EndReason, ProposalOutcome, RunStatus

_STAGES = {JobKind.BUILD: Stage.BUILD, JobKind.JUDGE: Stage.CORRECTNESS, JobKind.CONFIRM: Stage.CONFIRM}

BROKEN_OFF = frozenset(_STAGES)
"""A worker stops Jobs of these kinds when their Run is cancelled."""
LOST = "stopped responding"
"""The words in the error of a Job whose worker lost its lease."""


def lost_words(row: JobRow) -> str:
    """Return the error of a Job whose lease expired; after the last attempt with what to do."""
    said = f"worker {row.worker} {LOST} on attempt {row.attempts}"
    if row.attempts < ATTEMPTS:
        return said
    return f"{said}. It was killed (is memory short?), hangs, or lost the database: see the end of its log"


def cancelled(s: Session, row: JobRow) -> bool:
    """Tell whether a Job can be stopped and its Run was cancelled (which is final: no lock is needed)."""
    status = s.scalar(select(RunRow.status).where(RunRow.id == row.run_id)) if row.kind in BROKEN_OFF else None
    return status == RunStatus.CANCELLED


def drop(s: Session, row: JobRow, why: str) -> None:
    """End a locked, claimed Job of an ended Run; its Evaluation is cancelled and says nothing of the Candidate."""
    finish_job(s, row)
    row.state, row.error = "dead", why
    found = s.get_one(EvaluationRow, row.subject_id)
    if found.state in ("building", "judging"):
        found.state, found.settled_at = "cancelled", now(s)


def fail_job(s: Session, job: Job, message: str, *, ours: bool) -> list[Nudge]:
    """Record a failed step. `ours`: an internal error, retried up to the cap; else the Job ends."""
    row = lock_job(s, job)
    if row is None:
        return []
    if cancelled(s, row):
        drop(s, row, "the run was cancelled")
        return []
    lost = count_lost(s, row)
    again = ours and row.attempts < ATTEMPTS
    nudges = retry_job(s, row, clean(message)) if again else give_up(s, row, clean(message))
    charge_lost(s, [lost])
    return nudges


def give_up(s: Session, row: JobRow, message: str) -> list[Nudge]:
    """End a locked, claimed Job without a result, and store the consequence for its subject."""
    kind = JobKind(row.kind)
    nudges = _consequence(s, row, kind, message)
    row.state, row.error = "dead", message
    return nudges


def _consequence(s: Session, row: JobRow, kind: JobKind, message: str) -> list[Nudge]:
    if kind is JobKind.ADVANCE:
        run = lock_run(s, row.subject_id)
        finish_job(s, row)
        if not RunStatus(run.status).ended:
            end_run(s, run, RunStatus.FAILED, EndReason.INTERNAL_ERROR, f"The search failed: {message}")
        return []
    if kind is JobKind.PROPOSE:
        return close_proposal(s, row, ProposalResult(outcome=ProposalOutcome.ENDPOINT_ERROR, detail=message))
    if kind in _STAGES:
        return close_evaluation(s, row, _internal_error(s, row, _STAGES[kind], message))
    if kind is JobKind.WEBHOOK:
        close_webhook(s, row, Delivery(delivered=False, attempts=row.attempts, error=message))
        return []
    finish_job(s, row)
    return give_up_admitting(s, row, message)


def _internal_error(s: Session, row: JobRow, stage: Stage, message: str) -> Evaluation:
    found = s.get_one(EvaluationRow, row.subject_id)
    candidate = s.get_one(CandidateRow, found.candidate_id)
    problem = s.get_one(ProblemRow, s.get_one(RunRow, found.run_id).problem_id)
    return Evaluation(
        verdict=Verdict.INTERNAL_ERROR,
        stage=stage,
        reason=message or "the step failed without a message",
        problem_hash=problem.hash,
        candidate_hash=candidate.hash,
    )
