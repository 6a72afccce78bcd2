"""A Proposal: ask a Proposer for one Candidate."""

from __future__ import annotations

from functools import partial

from db.engine import read_session, write_session
from db.repositories import proposals
from db.transitions.reservations import reserve
from db.transitions.work.settle import settle_proposal
from db.views.rows import Job
from db.views.work import Call, ProposalResult, ProposeWork
from evolution.types import ProposalOutcome
from workers.context import Context
from workers.handlers.base import PaidSettle, Settle

RECENT = 20
REPEATED = "an answer was the same program as an earlier one: take another algorithm, blocking or layout"


def handle(context: Context, job: Job, work: ProposeWork) -> Settle:
    """Make the Proposal. Any failure of an endpoint is an outcome, not an error."""

    def held(call: Call) -> int:
        with write_session(context.engine) as s:
            return reserve(s, job, call)

    result = context.proposers.propose(work, notes=_refusals(context, work), hold=held)

    def bill_alone(reason: str) -> Settle:
        return partial(settle_proposal, job=job, result=_without_answer(result, reason))

    return PaidSettle(partial(settle_proposal, job=job, result=result), bill_alone)


def _without_answer(result: ProposalResult, reason: str) -> ProposalResult:
    """Return what a Proposal cost, without its answer, which could not be stored. A retry would pay again."""
    return ProposalResult(
        outcome=ProposalOutcome.MALFORMED,
        detail=f"the answer could not be stored: {reason}",
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        usd=result.usd,
        duration_s=result.duration_s,
    )


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
