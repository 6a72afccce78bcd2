"""The first page: the Champion of every Problem on every device."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories import leaderboard, runs
from service.context import Ctx
from service.pages.rendering import page
from service.principal import Reads

router = APIRouter()


@router.get("/")
def show(context: Ctx, who: Reads) -> Response:
    """The leaderboard; where it is empty, what to do about that."""
    with read_session(context.engine) as session:
        rows = leaderboard.rows(session, who.project_id, limit=200)
        active = [run for run in runs.list(session, who.project_id, limit=20) if not run.status.ended]
    top = max((row.against_fastest.interval.high for row in rows), default=1.0)
    return page("leaderboard.html", section="leaderboard", rows=rows, top=top, active=active)
