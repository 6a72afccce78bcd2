"""Reservations of budget for model calls, so that concurrent calls cannot exceed it together."""

from __future__ import annotations

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.clock import now
from db.tables.core import ArmStat, ProposalRow, RunRow
from db.transitions.access.projects import usd_left_of
from db.transitions.work.locks import lock_job, lock_run
from db.views.rows import Job
from db.views.work import Call
from evaluator.schema import from_json
from evolution.types import Budget, RunStatus


def reserve(s: Session, job: Job, call: Call) -> int:
    """Reserve the most that a call can cost; return its limit of reply tokens, 0 where it may not be made.

    This replaces the Proposal's previous reservation: `call.spent_tokens` and `call.spent_usd` are the cost of its
    earlier calls. Nothing is granted once the claim was lost, the wall budget is over or the Run has ended.
    """
    row = lock_job(s, job)
    if row is None:
        return 0
    proposal = s.get_one(ProposalRow, row.subject_id)
    run = lock_run(s, proposal.run_id)
    over = run.deadline_at is not None and run.deadline_at <= now(s)
    if RunStatus(run.status).ended or proposal.outcome is not None or over:
        return 0
    tokens_left, usd_left = _left(s, run, proposal)
    granted = call.affordable(tokens_left, usd_left)
    proposal.held_tokens = call.spent_tokens + (call.input_tokens + granted if granted else 0)
    proposal.held_usd = call.spent_usd + (call.usd(granted) if granted else 0.0)
    return granted


def _left(s: Session, run: RunRow, proposal: ProposalRow) -> tuple[int | None, float | None]:
    """Return the free tokens and dollars of the Run's budget and the project's quota: neither spent nor reserved."""
    budget = from_json(Budget, run.budget)
    held = s.execute(
        select(
            func.coalesce(func.sum(ProposalRow.held_tokens), 0), func.coalesce(func.sum(ProposalRow.held_usd), 0.0)
        ).where(ProposalRow.run_id == run.id, ProposalRow.outcome.is_(None), ProposalRow.id != proposal.id)
    ).one()
    usd_left = None if budget.usd is None else budget.usd - run.spent_usd - held[1]
    usd_quota = usd_left_of(s, run.project_id, proposal.id)
    return (
        None if budget.tokens is None else budget.tokens - run.spent_tokens - held[0],
        min((usd for usd in (usd_left, usd_quota) if usd is not None), default=None),
    )


def release(s: Session, run: RunRow, proposal: ProposalRow) -> None:
    """Free a settled Proposal's unused reservation: arms that were refused may ask again."""
    returned = proposal.held_tokens > proposal.input_tokens + proposal.output_tokens
    proposal.held_tokens, proposal.held_usd = 0, 0.0
    if returned:
        s.execute(update(ArmStat).where(ArmStat.run_id == run.id, ArmStat.broke).values(broke=False))
