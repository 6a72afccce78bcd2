"""Problems: store one, list them, read one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import problems
from db.transitions.problems import create_problem
from evaluator.screening.family import Family
from service.context import Ctx
from service.http.answering import ProblemId, answer, errors, refusals, write_errors
from service.http.caching import not_modified
from service.http.paging import Cursor, Limit, Search, decode_cursor, encode_cursor
from service.idempotency import Done, IdempotencyKey, perform
from service.identity.principal import Reads, Submits
from service.problem_source import read_request
from service.schemas.answers import ProblemAnswer, ProblemPage
from service.schemas.requests import ProblemRequest

router = APIRouter(prefix="/problems", tags=["problems"])


@router.post(
    "",
    operation_id="create_problem",
    status_code=201,
    response_model=ProblemAnswer,
    responses=write_errors(),
    summary="Store a Problem",
)
def create(context: Ctx, who: Submits, request: Request, body: ProblemRequest, key: IdempotencyKey = None) -> Response:
    """Read the reference statically and store it. The same Problem again returns the stored one."""
    problem, description = read_request(body)

    def work(session: Session) -> Done:
        view = create_problem(session, who.project_id, problem, description=description)
        value = ProblemAnswer.of(view, source=True)
        return Done(value=value, status=201, location=f"/api/v1/problems/{view.id}")

    return perform(context, who, request, key, body, work, operation="create_problem")


@router.get("", operation_id="list_problems", response_model=ProblemPage, responses=errors(), summary="List Problems")
def list_all(
    context: Ctx,
    who: Reads,
    limit: Limit = 50,
    cursor: Cursor = None,
    q: Search = None,
    hash: Annotated[str | None, Query(pattern=r"^[0-9a-f]{64}$", description="Only the one with this hash.")] = None,
    family: Annotated[Family | None, Query(description="Only of this kind of operation.")] = None,
    public: Annotated[bool, Query(description="All public ones, instead of your project's own.")] = False,
) -> Response:
    """List newest first, without sources."""
    list_name = f"problems:{q}:{hash}:{family}:{public}"
    after = decode_cursor(list_name, cursor)
    with read_session(context.engine) as session:
        found = problems.list(
            session, who.project_id, limit=limit + 1, after=after, text=q, hash=hash, family=family, public=public
        )
    more = encode_cursor(list_name, found[limit - 1].id) if len(found) > limit else None
    items = tuple(ProblemAnswer.of(view, source=False) for view in found[:limit])
    return answer(ProblemPage(items=items, next_cursor=more))


@router.get(
    "/{id}",
    operation_id="get_problem",
    response_model=ProblemAnswer,
    responses={**errors(404), 304: {"description": "Not modified: a Problem never changes."}},
    summary="Read a Problem",
)
def get(context: Ctx, who: Reads, request: Request, id: ProblemId) -> Response:
    """Return the Problem with its source. It never changes: cache it by its ETag."""
    with read_session(context.engine) as session, refusals():
        view = problems.get(session, id, project_id=who.project_id)
    headers, unchanged = not_modified(request, f"{view.id}-{view.hash}-{view.public}")
    return unchanged or answer(ProblemAnswer.of(view, source=True), headers=headers)
