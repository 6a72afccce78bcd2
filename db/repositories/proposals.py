"""Reads of Proposals."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from db.clock import iso
from db.errors import NotFound
from db.tables.core import CandidateRow, ProposalRow, RunRow
from db.tables.texts import load_text
from evolution.types import Arm, Fault, Operator, Proposal, ProposalOutcome


def view(row: ProposalRow, *, prompt: str = "", reply: str = "") -> Proposal:
    """Build the view of a row; `with_texts` loads its texts."""
    return Proposal(
        id=row.id,
        run_id=row.run_id,
        number=row.number,
        arm=Arm(
            proposer=row.proposer,
            operator=Operator(row.operator),
            model=row.answered_by or row.model,
            variant=row.variant,
        ),
        island=row.island,
        parents=tuple(row.parents),
        outcome=None if row.outcome is None else ProposalOutcome(row.outcome),
        candidate_id=row.candidate_id,
        prompt=prompt,
        prompt_template=row.prompt_template,
        reply=reply,
        plan=row.plan,
        detail=row.detail,
        fault=None if row.fault is None else Fault(row.fault),
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        usd=row.usd,
        duration_s=row.duration_s,
        created_at=iso(row.created_at) or "",
    )


def with_texts(s: Session, row: ProposalRow) -> Proposal:
    """Build the view of a row with prompt and reply."""
    prompt, reply = (load_text(s, row.run_id, parts) for parts in (row.prompt_parts, row.reply_parts))
    return view(row, prompt=prompt, reply=reply)


def get(s: Session, proposal_id: str, *, project_id: str | None = None) -> Proposal:
    """Return a Proposal with prompt and reply. Raise NotFound."""
    query = select(ProposalRow).where(ProposalRow.id == proposal_id)
    if project_id is not None:
        query = query.join(RunRow, RunRow.id == ProposalRow.run_id).where(RunRow.project_id == project_id)
    row = s.scalars(query).one_or_none()
    if row is None:
        raise NotFound("proposal", proposal_id)
    return with_texts(s, row)


def of_candidate(s: Session, candidate_id: str, *, project_id: str | None = None) -> Proposal | None:
    """Return a Candidate's Proposal with prompt and reply. Only its own project sees that of a public Candidate."""
    query = (
        select(ProposalRow)
        .join(CandidateRow, CandidateRow.proposal_id == ProposalRow.id)
        .where(CandidateRow.id == candidate_id)
    )
    if project_id is not None:
        query = query.join(RunRow, RunRow.id == ProposalRow.run_id).where(RunRow.project_id == project_id)
    row = s.scalars(query).one_or_none()
    return None if row is None else with_texts(s, row)


def list(s: Session, run_id: str, *, limit: int = 50, after: str | None = None) -> tuple[Proposal, ...]:
    """List newest first, without prompts and replies; `after` is the last id of the previous page."""
    query = select(ProposalRow).where(ProposalRow.run_id == run_id)
    if after is not None:
        # Filter by number, the order of the list: one index range, at any depth of the page.
        last = select(ProposalRow.number).where(ProposalRow.id == after, ProposalRow.run_id == run_id)
        query = query.where(ProposalRow.number < last.scalar_subquery())
    query = query.options(defer(ProposalRow.prompt_parts), defer(ProposalRow.reply_parts)).order_by(
        ProposalRow.number.desc()
    )
    return tuple(view(row) for row in s.scalars(query.limit(limit)))
