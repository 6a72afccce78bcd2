"""Proposals: of a Run, and one with its prompt and reply."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories import proposals, runs
from evolution.types import Proposal
from service.context import Ctx
from service.http.answering import ProposalId, RunId, answer, errors, refusals
from service.http.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.identity.principal import Reads
from service.schemas.answers import ProposalPage, ProposalSummary

router = APIRouter(tags=["proposals"])


@router.get(
    "/runs/{id}/proposals",
    operation_id="list_proposals",
    response_model=ProposalPage,
    responses=errors(404),
    summary="List the Proposals of a Run",
)
def list_of_run(context: Ctx, who: Reads, id: RunId, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List newest first, without prompts and replies."""
    list_name = f"proposals:{id}"
    after = decode_cursor(list_name, cursor)
    with read_session(context.engine) as session, refusals():
        runs.get(session, id, project_id=who.project_id)
        found = proposals.list(session, id, limit=limit + 1, after=after)
    more = encode_cursor(list_name, found[limit - 1].id) if len(found) > limit else None
    items = tuple(ProposalSummary.of(proposal) for proposal in found[:limit])
    return answer(ProposalPage(items=items, next_cursor=more))


@router.get(
    "/proposals/{id}",
    operation_id="get_proposal",
    response_model=Proposal,
    responses=errors(404),
    summary="Read a Proposal",
)
def get(context: Ctx, who: Reads, id: ProposalId) -> Response:
    """Return the prompt, the reply and the cost."""
    with read_session(context.engine) as session, refusals():
        return answer(proposals.get(session, id, project_id=who.project_id))
