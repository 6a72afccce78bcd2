"""The inner state of a Run's search: Archive, milestones, tallies, arms, work in flight, lineage."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from db.engine import read_session
from db.repositories import archive, candidates, history, lineage, runs
from db.repositories.work import queue
from service.context import Context, Ctx
from service.http.answering import CandidateId, RunId, answer, errors, refusals
from service.identity.principal import Principal, Reads
from service.schemas.answers import ArmPage, CandidatePage, JobPage, LineageAnswer, MilestonePage, TallyPage

router = APIRouter()

_RUN: dict[str, Any] = {"tags": ["runs"], "responses": errors(404)}


def _of_run(context: Context, who: Principal, run_id: str, read: Any, page: Any) -> Response:
    with read_session(context.engine) as session, refusals():
        runs.get(session, run_id, project_id=who.project_id)
        found = read(session, run_id)
    return answer(page(items=tuple(found), next_cursor=None))


@router.get(
    "/runs/{id}/archive", operation_id="get_archive", response_model=CandidatePage, summary="Read the Archive", **_RUN
)
def get_archive(context: Ctx, who: Reads, id: RunId) -> Response:
    """Return the fastest passed Candidate of each of the 200 fastest designs, fastest first."""
    return _of_run(context, who, id, archive.elites, CandidatePage)


@router.get(
    "/runs/{id}/milestones",
    operation_id="list_milestones",
    response_model=MilestonePage,
    summary="List the milestones of a Run",
    **_RUN,
)
def list_milestones(context: Ctx, who: Reads, id: RunId) -> Response:
    """List every moment at which the best changed, with the evaluations, seconds and dollars used by then."""
    return _of_run(context, who, id, history.milestones, MilestonePage)


@router.get(
    "/runs/{id}/tallies",
    operation_id="list_tallies",
    response_model=TallyPage,
    summary="Count the verdicts of a Run",
    **_RUN,
)
def list_tallies(context: Ctx, who: Reads, id: RunId) -> Response:
    """Count the ended Evaluations by stage and Verdict."""
    return _of_run(context, who, id, history.tallies, TallyPage)


@router.get(
    "/runs/{id}/arms", operation_id="list_arms", response_model=ArmPage, summary="List the arms of a Run", **_RUN
)
def list_arms(context: Ctx, who: Reads, id: RunId) -> Response:
    """List Proposers, models and operators with their requests, costs and results, best first."""
    return _of_run(context, who, id, history.arms, ArmPage)


@router.get(
    "/runs/{id}/jobs", operation_id="list_jobs", response_model=JobPage, summary="List the work of a Run", **_RUN
)
def list_jobs(context: Ctx, who: Reads, id: RunId) -> Response:
    """List work that is claimed, ready, or held while the Run is paused: oldest first, at most a hundred."""
    return _of_run(context, who, id, queue.of_run, JobPage)


@router.get(
    "/candidates/{id}/lineage",
    operation_id="get_lineage",
    tags=["candidates"],
    response_model=LineageAnswer,
    responses=errors(404),
    summary="Read the lineage of a Candidate",
)
def get_lineage(
    context: Ctx,
    who: Reads,
    id: CandidateId,
    most: Annotated[int, Query(ge=1, le=lineage.MOST_NODES, description="Maximum number of each.")] = 100,
) -> Response:
    """Return its nearest ancestors, oldest first, and its descendants among the next 5,000 of its Run."""
    with read_session(context.engine) as session, refusals():
        candidate = candidates.get(session, id, project_id=who.project_id)
        ancestors = lineage.ancestry(session, candidate.parents, project_id=who.project_id, most=most)
        descendants = lineage.descendants(session, candidate, project_id=who.project_id, most=most)
    return answer(LineageAnswer(candidate=candidate, ancestors=ancestors, descendants=descendants))
