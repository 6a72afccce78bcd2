"""Reads of Proposals."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from db.clock import iso
from db.errors import NotFound
from db.tables.core import CandidateRow, ProposalRow, RunRow
from db.tables.texts import load_text
from evolution.types import Arm, Operator, Proposal, ProposalOutcome


def view(row: ProposalRow, *, prompt: str = "", reply: str = "") -> Proposal:
    """The picture of a row; its texts are loaded by `whole`."""
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
        detail=row.detail,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        usd=row.usd,
        duration_s=row.duration_s,
        created_at=iso(row.created_at) or "",
    )


def with_texts(s: Session, row: ProposalRow) -> Proposal:
    """The picture of a row with prompt and reply."""
    prompt, reply = (load_text(s, row.run_id, parts) for parts in (row.prompt_parts, row.reply_parts))
    return view(row, prompt=prompt, reply=reply)


def get(s: Session, proposal_id: str, *, project_id: str | None = None) -> Proposal:
    """With prompt and reply. Raises NotFound."""
    query = select(ProposalRow).where(ProposalRow.id == proposal_id)
    if project_id is not None:
        query = query.join(RunRow, RunRow.id == ProposalRow.run_id).where(RunRow.project_id == project_id)
    row = s.scalars(query).one_or_none()
    if row is None:
        raise NotFound("proposal", proposal_id)
    return with_texts(s, row)


def of_candidate(s: Session, candidate_id: str, *, project_id: str | None = None) -> Proposal | None:
    """The Proposal that a Candidate came of, with prompt and reply; a public Candidate's is its own project's alone."""
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
    """Newest first, without prompts and replies; `after` is the last id of the page before."""
    query = select(ProposalRow).where(ProposalRow.run_id == run_id)
    if after is not None:
        # By number, as it is ordered: a range of one index, however deep the page lies.
        last = select(ProposalRow.number).where(ProposalRow.id == after, ProposalRow.run_id == run_id)
        query = query.where(ProposalRow.number < last.scalar_subquery())
    query = query.options(defer(ProposalRow.prompt_parts), defer(ProposalRow.reply_parts)).order_by(
        ProposalRow.number.desc()
    )
    return tuple(view(row) for row in s.scalars(query.limit(limit)))
