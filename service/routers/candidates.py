"""Candidates: of a Run, one, its source, its Evaluations."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, runs
from db.views.rows import CandidateView
from evaluator.types import Language, Verdict
from service.context import Ctx
from service.http.answering import CandidateId, RunId, answer, errors, refusals
from service.http.caching import not_modified
from service.http.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.identity.principal import Reads
from service.schemas.answers import CandidatePage

router = APIRouter(tags=["candidates"])

Order = Annotated[
    Literal["newest", "fastest"], Query(description="By number from the newest on; or what passed, the fastest first.")
]
Proposer = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]+$")]


@router.get(
    "/runs/{id}/candidates",
    operation_id="list_candidates",
    response_model=CandidatePage,
    responses=errors(404),
    summary="List the Candidates of a Run",
)
def list_of_run(
    context: Ctx,
    who: Reads,
    id: RunId,
    limit: Limit = 50,
    cursor: Cursor = None,
    order: Order = "newest",
    verdict: Annotated[Verdict | None, Query(description="Only those with this verdict.")] = None,
    language: Annotated[Language | None, Query(description="Only those written in this.")] = None,
    proposer: Annotated[Proposer, Query(description="Only those of this Proposer or model.")] = None,
    confirmed: Annotated[bool | None, Query(description="Only those that were, or were not, confirmed.")] = None,
    island: Annotated[int | None, Query(ge=0, le=63, description="Only those of this island.")] = None,
) -> Response:
    """List newest first, or the fastest; without their sources."""
    only = candidates.Filter(verdict=verdict, language=language, proposer=proposer, confirmed=confirmed, island=island)
    list_name = f"candidates:{id}:{order}:{only!r}"
    after = decode_cursor(list_name, cursor)
    fastest = order == "fastest"
    with read_session(context.engine) as session, refusals():
        runs.get(session, id, project_id=who.project_id)
        found = candidates.list(session, id, limit=limit + 1, after=after, by_speedup=fastest, only=only)
    more = encode_cursor(list_name, found[limit - 1].id) if len(found) > limit else None
    return answer(CandidatePage(items=tuple(found[:limit]), next_cursor=more))


@router.get(
    "/candidates/{id}",
    operation_id="get_candidate",
    response_model=CandidateView,
    responses=errors(404),
    summary="Read a Candidate",
)
def get(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """Return the origin and the result; its source and its Evaluations have addresses of their own."""
    with read_session(context.engine) as session, refusals():
        return answer(candidates.get(session, id, project_id=who.project_id))


@router.get(
    "/candidates/{id}/source",
    operation_id="get_candidate_source",
    response_class=Response,
    responses={
        **errors(404),
        200: {"description": "The source, as text.", "content": {"text/x-python": {"schema": {"type": "string"}}}},
        304: {"description": "Not modified: a source never changes."},
    },
    summary="Read the source of a Candidate",
)
def get_source(context: Ctx, who: Reads, request: Request, id: CandidateId) -> Response:
    """Return the text alone, as it was judged. It never changes: cache it by its ETag."""
    with read_session(context.engine) as session, refusals():
        view = candidates.get(session, id, project_id=who.project_id)
        headers, unchanged = not_modified(request, view.hash)
        if unchanged is not None:
            return unchanged
        source = candidates.source(session, id).source
    return Response(source.encode("utf-8", "replace"), headers=headers, media_type="text/x-python")
