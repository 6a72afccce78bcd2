"""Reservations of budget for model calls, so that concurrent calls cannot exceed it together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from db.clock import now
from db.queues import JobKind
from db.tables.core import ArmStat, ProposalRow, RunRow
from db.tables.queue import JobRow
from db.transitions.access.projects import charge, usd_left_of
from db.transitions.work.locks import lock_job, lock_run
from db.views.rows import Job
from db.views.work import Call
from evaluator.schema import from_json
from evolution.arms import is_free
from evolution.types import Arm, Budget, Operator, RunStatus

_RECENT, _MOST_REPLIES, _FEW = 2000, 64, 20


@dataclass(frozen=True, slots=True)
class Lost:
    """The most that lost calls of a Proposal can have cost its project."""

    project_id: str
    usd: float
    tokens: int


def reserve(s: Session, job: Job, call: Call) -> int:
    """Reserve the cost of a call; return its limit of reply tokens, 0 where it may not be made.

    While the budget has room, the limit is the endpoint's. Where it is short, it is shared between the Proposals in
    flight, and none gets less than the 95th percentile of what replies of this Proposer took in this Run: a shorter
    limit would pay for replies that are cut off.

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
    granted = _share(call, tokens_left, usd_left, usual=_usual_reply(s, run, proposal), waiting=_waiting(s, run))
    proposal.held_tokens = call.spent_tokens + (call.input_tokens + granted if granted else 0)
    proposal.held_usd = call.spent_usd + (call.usd(granted) if granted else 0.0)
    return granted


def _share(call: Call, tokens_left: int | None, usd_left: float | None, *, usual: int | None, waiting: int) -> int:
    """Return the limit of a reply: all that is left where no reply is known, else at least a usual one."""
    most = call.affordable(tokens_left, usd_left)
    if usual is None or not most:
        return most
    usual = min(usual, call.output_tokens)
    share = call.affordable(
        None if tokens_left is None else tokens_left // waiting, None if usd_left is None else usd_left / waiting
    )
    return max(usual, share) if most >= usual else 0


def _waiting(s: Session, run: RunRow) -> int:
    """Return the number of open Proposals of models that hold nothing yet, this one included; at least 1."""
    rows = s.execute(
        select(ProposalRow.proposer, ProposalRow.operator).where(
            ProposalRow.run_id == run.id, ProposalRow.outcome.is_(None), ProposalRow.held_tokens == 0
        )
    )
    return max(1, sum(not is_free(Arm(proposer=row.proposer, operator=Operator(row.operator))) for row in rows))


def _usual_reply(s: Session, run: RunRow, proposal: ProposalRow) -> int | None:
    """Return the 95th percentile of the reply tokens of this Proposer's newest answers in this Run, None before any.

    Of few answers it is the longest, and a quarter more.
    """
    seen = s.scalars(
        select(ProposalRow.output_tokens)
        .where(
            ProposalRow.run_id == run.id,
            ProposalRow.number > run.proposals - _RECENT,
            ProposalRow.proposer == proposal.proposer,
            ProposalRow.outcome.is_not(None),
            ProposalRow.output_tokens > 0,
        )
        .order_by(ProposalRow.number.desc())
        .limit(_MOST_REPLIES)
    ).all()
    if not seen:
        return None
    return max(seen) * 5 // 4 if len(seen) < _FEW else sorted(seen)[math.ceil(0.95 * len(seen)) - 1]


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


def count_lost(s: Session, row: JobRow) -> Lost | None:
    """Count the reservation of a Proposal as spent whose locked Job failed: its calls may have been sent, and be paid.

    Return what is to be charged to the project, last in the transaction.
    """
    proposal = s.get(ProposalRow, row.subject_id) if row.kind == JobKind.PROPOSE else None
    if proposal is None:
        return None
    run = lock_run(s, proposal.run_id)
    lost = Lost(run.project_id, usd=proposal.held_usd, tokens=proposal.held_tokens)
    run.spent_usd += lost.usd
    run.spent_tokens += lost.tokens
    proposal.usd += lost.usd
    proposal.input_tokens += lost.tokens  # output tokens tell how long replies are
    proposal.held_tokens, proposal.held_usd = 0, 0.0
    return lost


def charge_lost(s: Session, lost: Iterable[Lost | None]) -> None:
    """Charge projects for lost calls, in the order of their ids. Call it last in a transaction."""
    for one in sorted(filter(None, lost), key=attrgetter("project_id")):
        charge(s, one.project_id, usd=one.usd, tokens=one.tokens)


def release(s: Session, run: RunRow, proposal: ProposalRow, used_tokens: int) -> None:
    """Free a settled Proposal's unused reservation: arms that were refused may ask again."""
    returned = proposal.held_tokens > used_tokens
    proposal.held_tokens, proposal.held_usd = 0, 0.0
    if returned:
        s.execute(update(ArmStat).where(ArmStat.run_id == run.id, ArmStat.broke).values(broke=False))
