"""A Proposal: ask a Proposer for one Candidate."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.engine import read_session, write_session
from db.queues import Nudge
from db.repositories import proposals
from db.transitions.reservations import reserve
from db.transitions.work.settle import settle_proposal
from db.views.rows import Job
from db.views.work import Call, ProposeWork
from evolution.types import ProposalOutcome
from workers.context import Context
from workers.handlers.base import Settle

RECENT = 20
REPEATED = "an answer was the same program as an earlier one: take another algorithm, blocking or layout"


def handle(context: Context, job: Job, work: ProposeWork) -> Settle:
    """Make the Proposal. Any failure of an endpoint is an outcome, not an error."""

    def held(call: Call) -> int:
        with write_session(context.engine) as s:
            return reserve(s, job, call)

    result = context.proposers.propose(work, notes=_refusals(context, work), hold=held)

    def settle(s: Session) -> list[Nudge]:
        return settle_proposal(s, job, result)

    return settle


def _refusals(context: Context, work: ProposeWork) -> tuple[str, ...]:
    """Return the reasons why this Proposer's latest replies in this Run were unusable, newest first.

    Faults of the model itself are left out: they are its operator's to mend.
    """
    with read_session(context.engine) as s:
        recent = proposals.list(s, work.run_id, limit=RECENT)
    return tuple(
        dict.fromkeys(
            REPEATED if proposal.outcome is ProposalOutcome.DUPLICATE else proposal.detail
            for proposal in recent
            if proposal.outcome in (ProposalOutcome.MALFORMED, ProposalOutcome.DUPLICATE)
            and proposal.detail
            and proposal.arm.proposer == work.arm.proposer
            and not (proposal.fault is not None and proposal.fault.of_model)
        )
    )
