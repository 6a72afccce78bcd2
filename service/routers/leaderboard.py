"""The leaderboard: the Champion of every Problem on every device."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories import devices, leaderboard
from service.answering import answer, errors
from service.context import Ctx
from service.paging import Limit
from service.principal import Reads
from service.schemas.answers import DevicePage, LeaderboardPage

router = APIRouter()


@router.get(
    "/leaderboard",
    operation_id="list_leaderboard",
    tags=["leaderboard"],
    response_model=LeaderboardPage,
    responses=errors(),
    summary="Read the leaderboard",
)
def list_champions(context: Ctx, who: Reads, limit: Limit = 100) -> Response:
    """Greatest confirmed speedup over the fastest Baseline first."""
    with read_session(context.engine) as session:
        found = leaderboard.rows(session, who.project_id, limit=limit)
    return answer(LeaderboardPage(items=tuple(found), next_cursor=None))


@router.get(
    "/devices",
    operation_id="list_devices",
    tags=["devices"],
    response_model=DevicePage,
    responses=errors(),
    summary="List devices",
)
def list_devices(context: Ctx, _: Reads) -> Response:
    """Every device that a worker has registered, newest seen first."""
    with read_session(context.engine) as session:
        found = devices.list(session)
    return answer(DevicePage(items=tuple(found), next_cursor=None))
