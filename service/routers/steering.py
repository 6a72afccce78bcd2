"""Steering a Run: more budget, a fork, a Candidate by hand."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.transitions.extend import extend_run
from db.transitions.fork import fork_run
from db.transitions.inject import inject_candidate
from evolution.types import Proposal, Run
from service.context import Ctx
from service.http.answering import RunId, write_errors
from service.idempotency import Done, IdempotencyKey, perform
from service.identity.principal import Submits
from service.routers.runs import check_prices, check_proposers
from service.schemas.requests import ExtendRequest, ForkRequest, InjectRequest

router = APIRouter(prefix="/runs", tags=["runs"])


@router.post(
    "/{id}/extend",
    operation_id="extend_run",
    response_model=Run,
    responses=write_errors(404, 409),
    summary="Give a Run more budget",
)
def extend(
    context: Ctx, who: Submits, request: Request, id: RunId, body: ExtendRequest, key: IdempotencyKey = None
) -> Response:
    """Add to each limit that the Run has. One that ended by budget, stagnation or its target continues."""

    def work(session: Session) -> Done:
        run, nudges = extend_run(
            session, id, body.budget.budget(), target_speedup=body.target_speedup, project_id=who.project_id
        )
        return Done(value=run, status=200, nudges=nudges)

    return perform(context, who, request, key, body, work, operation="extend_run")


@router.post(
    "/{id}/fork",
    operation_id="fork_run",
    status_code=202,
    response_model=Run,
    responses=write_errors(404, 409),
    summary="Fork a Run",
)
def fork(
    context: Ctx, who: Submits, request: Request, id: RunId, body: ForkRequest, key: IdempotencyKey = None
) -> Response:
    """Start a new Run of the same Problem and device, seeded with this one's elites or Champions."""
    config = body.config.config(context.settings.default_proposers) if body.config is not None else None
    if config is not None:
        check_proposers(context, config)

    def work(session: Session) -> Done:
        run, nudges = fork_run(
            session, id, body.budget.budget(), config, heritage=body.heritage, project_id=who.project_id
        )
        check_prices(context, session, run)
        return Done(value=run, status=202, location=f"/api/v1/runs/{run.id}", nudges=nudges)

    return perform(context, who, request, key, body, work, operation="fork_run")


@router.post(
    "/{id}/candidates",
    operation_id="inject_candidate",
    status_code=202,
    response_model=Proposal,
    responses=write_errors(404, 409),
    summary="Inject a Candidate into a Run",
)
def inject(
    context: Ctx, who: Submits, request: Request, id: RunId, body: InjectRequest, key: IdempotencyKey = None
) -> Response:
    """Judge a Candidate along with the search's own; a good one becomes a parent. `Location` is the Candidate.

    A source that the Run already has is not judged again: the outcome is then `duplicate`, of `candidate_id`.
    """
    candidate = body.candidate(parents=tuple(body.parents))

    def work(session: Session) -> Done:
        proposal, nudges = inject_candidate(session, id, candidate, by=body.by, project_id=who.project_id)
        location = f"/api/v1/candidates/{proposal.candidate_id}"
        return Done(value=proposal, status=202, location=location, nudges=nudges)

    return perform(context, who, request, key, body, work, operation="inject_candidate")
