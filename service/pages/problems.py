"""One Problem as a page: the reference, its Workloads, and its Champions."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories import leaderboard, problems
from service.answering import ProblemId, refusals
from service.context import Ctx
from service.pages.highlighting import highlight
from service.pages.rendering import page
from service.principal import Reads

router = APIRouter()


@router.get("/problems/{id}")
def show(context: Ctx, who: Reads, id: ProblemId) -> Response:
    """The page of one Problem."""
    with read_session(context.engine) as session, refusals():
        view = problems.get(session, id, project_id=who.project_id)
        champions = leaderboard.rows(session, who.project_id, problem_id=id)
    return page(
        "problem.html",
        section="leaderboard",
        view=view,
        problem=view.problem,
        source=highlight(view.problem.source),
        champions=champions,
        top=max((row.against_fastest.interval.high for row in champions), default=1.0),
    )
