"""Runs: start one, list them, read one, pause, resume and cancel."""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import problems, runs
from db.transitions.problems import create_problem
from db.transitions.runs import cancel_run, create_run, pause_run, resume_run
from evolution.types import Run, RunConfig
from service.answering import RunId, answer, checked_id, errors, refusals, write_errors
from service.context import Context, Ctx
from service.errors import Unprocessable
from service.idempotency import Done, IdempotencyKey, perform
from service.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.principal import Principal, Reads, Submits
from service.reading import read_request
from service.schemas.answers import RunPage
from service.schemas.requests import RunRequest

router = APIRouter(prefix="/runs", tags=["runs"])


@router.post(
    "",
    operation_id="create_run",
    status_code=202,
    response_model=Run,
    responses=write_errors(404),
    summary="Start a Run",
)
def create(context: Ctx, who: Submits, request: Request, body: RunRequest, key: IdempotencyKey = None) -> Response:
    """Stores the Problem where it is given here, and starts optimising it. Follow the Run at `Location`."""
    config = body.config.config(context.settings.default_proposers)
    _check_proposers(context, config)
    given = read_request(body.problem) if body.problem is not None else None
    problem_id = checked_id(body.problem_id, "problem") if body.problem_id is not None else None

    def work(session: Session) -> Done:
        if given is not None:
            problem = create_problem(session, who.project_id, given[0], description=given[1])
        else:
            problem = problems.get(session, problem_id or "", project_id=who.project_id)
        if not any(not w.held_out for w in problem.problem.workloads_for(body.device)):
            raise Unprocessable(
                f"The Problem has no Workload for {body.device.value}: add one to its WORKLOADS, "
                "or take another device.",
                slug="no-workload",
                title="Nothing to optimise on this device",
            )
        run, nudges = create_run(session, who.project_id, problem.id, body.device, body.budget.budget(), config)
        return Done(value=run, status=202, location=f"/api/v1/runs/{run.id}", nudges=nudges)

    return perform(context, who, request, key, body, work)


def _check_proposers(context: Context, config: RunConfig) -> None:
    known = context.settings.proposer_names
    unknown = [name for name in config.proposers if name not in known and not name.startswith("replay:")]
    if unknown:
        raise Unprocessable(
            f"There is no Proposer named {unknown[0]!r} here. Known: {', '.join(known)}.",
            slug="unknown-proposer",
            title="The Proposer is not configured",
        )


@router.get("", operation_id="list_runs", response_model=RunPage, responses=errors(), summary="List Runs")
def list_all(context: Ctx, who: Reads, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Newest first."""
    after = decode_cursor("runs", cursor)
    with read_session(context.engine) as session:
        found = runs.list(session, who.project_id, limit=limit + 1, after=after)
    more = encode_cursor("runs", found[limit - 1].id) if len(found) > limit else None
    return answer(RunPage(items=tuple(found[:limit]), next_cursor=more))


@router.get("/{id}", operation_id="get_run", response_model=Run, responses=errors(404), summary="Read a Run")
def get(context: Ctx, who: Reads, id: RunId) -> Response:
    """Its state, budget and spend, and the best so far."""
    with read_session(context.engine) as session, refusals():
        return answer(runs.get(session, id, project_id=who.project_id))


class Transition(Protocol):
    """A change of a Run's state, as `db.transitions.runs` has them."""

    def __call__(self, s: Session, run_id: str, *, project_id: str | None = None) -> tuple[Run, list[str]]: ...


def _change(
    context: Context, who: Principal, request: Request, key: str | None, run_id: str, transition: Transition
) -> Response:
    def work(session: Session) -> Done:
        run, nudges = transition(session, run_id, project_id=who.project_id)
        return Done(value=run, status=200, nudges=nudges)

    return perform(context, who, request, key, None, work)


@router.post("/{id}/cancel", operation_id="cancel_run", response_model=Run, responses=write_errors(404))
def cancel(context: Ctx, who: Submits, request: Request, id: RunId, key: IdempotencyKey = None) -> Response:
    """Ends the Run now; what is in flight is stored. A Run that has ended stays as it is."""
    return _change(context, who, request, key, id, cancel_run)


@router.post("/{id}/pause", operation_id="pause_run", response_model=Run, responses=write_errors(404, 409))
def pause(context: Ctx, who: Submits, request: Request, id: RunId, key: IdempotencyKey = None) -> Response:
    """Holds the Run: nothing new starts, what is in flight is stored, the wall clock stands."""
    return _change(context, who, request, key, id, pause_run)


@router.post("/{id}/resume", operation_id="resume_run", response_model=Run, responses=write_errors(404, 409))
def resume(context: Ctx, who: Submits, request: Request, id: RunId, key: IdempotencyKey = None) -> Response:
    """Goes on with a paused Run."""
    return _change(context, who, request, key, id, resume_run)
