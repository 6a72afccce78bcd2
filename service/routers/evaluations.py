"""Evaluations: have a Candidate judged on its own, read the result, and the raw samples behind it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, evaluations, runs
from db.transitions.submit import submit_candidate
from db.views.rows import EvaluationRecord
from evaluator.types import Verdict
from service.context import Ctx
from service.http.answering import CandidateId, EvaluationId, RunId, answer, errors, refusals, write_errors
from service.http.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.idempotency import Done, IdempotencyKey, perform
from service.identity.principal import Reads, Submits
from service.problem_source import ChosenProblem
from service.schemas.answers import EvaluationPage, SamplesPage
from service.schemas.requests import EvaluationRequest

router = APIRouter(tags=["evaluations"])

State = Literal["building", "judging", "settled", "duplicate", "cancelled"]


@router.post(
    "/evaluations",
    operation_id="create_evaluation",
    status_code=202,
    response_model=EvaluationRecord,
    responses=write_errors(404),
    summary="Have a Candidate judged",
)
def create(
    context: Ctx, who: Submits, request: Request, body: EvaluationRequest, key: IdempotencyKey = None
) -> Response:
    """Judge a kernel of an external agent or of a person: stored, screened, built and judged like any other.

    Read `Location` until its `state` is settled, or follow the events of its `run_id`. A Candidate that beats the
    Champion is confirmed too, and may become the Champion.
    """
    chosen = ChosenProblem.read(body.problem_id, body.problem, body.device)
    candidate = body.candidate()

    def work(session: Session) -> Done:
        problem = chosen.find(session, who.project_id)
        record, nudges = submit_candidate(session, who.project_id, problem.id, body.device, candidate, by=body.by)
        return Done(value=record, status=202, location=f"/api/v1/evaluations/{record.id}", nudges=nudges)

    return perform(context, who, request, key, body, work, operation="create_evaluation")


@router.get(
    "/evaluations/{id}",
    operation_id="get_evaluation",
    response_model=EvaluationRecord,
    responses=errors(404),
    summary="Read an Evaluation",
)
def get(context: Ctx, who: Reads, id: EvaluationId) -> Response:
    """Return its state, and once it is settled the judge's whole result, without raw samples."""
    with read_session(context.engine) as session, refusals():
        return answer(evaluations.get(session, id, project_id=who.project_id))


@router.get(
    "/evaluations/{id}/samples",
    operation_id="list_samples",
    response_model=SamplesPage,
    responses=errors(404),
    summary="Read the samples of an Evaluation",
)
def get_samples(context: Ctx, who: Reads, id: EvaluationId) -> Response:
    """Return every raw sample, of the Candidate and of the Baselines of the same session; old ones may be dropped."""
    with read_session(context.engine) as session, refusals():
        evaluations.get(session, id, project_id=who.project_id)
        found = evaluations.samples(session, id)
    return answer(SamplesPage(items=found, next_cursor=None))


@router.get(
    "/candidates/{id}/evaluations",
    operation_id="list_evaluations",
    response_model=EvaluationPage,
    responses=errors(404),
    summary="List the Evaluations of a Candidate",
)
def list_of_candidate(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """List oldest first, with results. There are few, so there is one page."""
    with read_session(context.engine) as session, refusals():
        candidates.get(session, id, project_id=who.project_id)
        found = evaluations.of_candidate(session, id)
    return answer(EvaluationPage(items=found, next_cursor=None))


@router.get(
    "/runs/{id}/evaluations",
    operation_id="list_run_evaluations",
    response_model=EvaluationPage,
    responses=errors(404),
    summary="List the Evaluations of a Run",
)
def list_of_run(
    context: Ctx,
    who: Reads,
    id: RunId,
    limit: Limit = 50,
    cursor: Cursor = None,
    state: Annotated[State | None, Query(description="Only those in this state.")] = None,
    verdict: Annotated[Verdict | None, Query(description="Only those with this verdict.")] = None,
) -> Response:
    """List newest first, without results."""
    list_name = f"evaluations:{id}:{state}:{verdict}"
    after = decode_cursor(list_name, cursor)
    with read_session(context.engine) as session, refusals():
        runs.get(session, id, project_id=who.project_id)
        found = evaluations.of_run(session, id, limit=limit + 1, after=after, state=state, verdict=verdict)
    more = encode_cursor(list_name, found[limit - 1].id) if len(found) > limit else None
    return answer(EvaluationPage(items=found[:limit], next_cursor=more))
