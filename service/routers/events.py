"""The events of a Run: as a stream of server-sent events, or as JSON pages."""

from __future__ import annotations

import re
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.sse import EventSourceResponse
from starlette.responses import Response

from db.engine import read_session
from db.repositories import events, runs
from evolution.types import Run
from service.context import Context, Ctx
from service.errors import BadRequest
from service.http.answering import RunId, answer, errors, refusals
from service.http.paging import Limit
from service.identity.principal import Principal, Reads
from service.schemas.answers import EventPage
from service.streams.follow import follow

router = APIRouter(prefix="/runs", tags=["runs"])

MAX_SEQ = 2**53
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get(
    "/{id}/events",
    operation_id="list_events",
    response_model=EventPage,
    responses={
        **errors(404),
        200: {
            "description": "A page of events, or with `Accept: text/event-stream` all of them as they happen. The id "
            "of each is its `seq`; a stream resumes after Last-Event-ID and ends once the Run has ended.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {"description": "A stream was requested, and nothing is left to send: the Run has ended."},
    },
    summary="Read or follow the events of a Run",
)
async def list_all(
    context: Ctx,
    who: Reads,
    request: Request,
    id: RunId,
    after: Annotated[int, Query(ge=0, le=MAX_SEQ, description="Events with a greater seq.")] = 0,
    limit: Limit = 100,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", description="As `after`.")] = None,
) -> Response:
    """List events without gaps, in commit order."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        return await anyio.to_thread.run_sync(_page, context, who, id, after, limit)
    if last_event_id:
        after = _seq(last_event_id)
    run = await anyio.to_thread.run_sync(_run, context, who, id)
    if after > run.last_seq:
        raise BadRequest(f"There is no event {after} yet: the last one is {run.last_seq}.", slug="bad-event-id")
    if run.status.ended and after == run.last_seq:
        # 204 tells an EventSource not to come back.
        return Response(status_code=204, media_type=EventSourceResponse.media_type, headers=STREAM_HEADERS)
    content = follow(
        context.hub,
        id,
        after,
        known=run.last_seq,
        ended=run.status.ended,
        keep_alive_s=context.keep_alive_s,
        lifetime_s=context.stream_lifetime_s,
        owner=who.credential,
    )
    return EventSourceResponse(content, headers=STREAM_HEADERS)


def _seq(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise BadRequest("Last-Event-ID is the id of an event of this Run: a whole number.", slug="bad-event-id")
    return int(text)


def _run(context: Context, who: Principal, run_id: str) -> Run:
    with read_session(context.engine) as session, refusals():
        return runs.get(session, run_id, project_id=who.project_id)


def _page(context: Context, who: Principal, run_id: str, after: int, limit: int) -> Response:
    with read_session(context.engine) as session, refusals():
        runs.get(session, run_id, project_id=who.project_id)
        found = events.after(session, run_id, after, limit + 1)
    more = str(found[limit - 1].seq) if len(found) > limit else None
    return answer(EventPage(items=tuple(found[:limit]), next_cursor=more))
