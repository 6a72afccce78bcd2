"""The leaderboard: the Champion of every Problem on every device, as JSON, as a file, and as summaries."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from db.engine import read_session
from db.repositories import history, leaderboard, problems
from db.repositories.leaderboard import Filter, Sort
from evaluator.screening.family import Family
from evaluator.types import DeviceKind, Language
from service.context import Ctx
from service.exports import LEADERBOARDS
from service.exports.leaderboard_csv import MOST_ROWS
from service.http.answering import ProblemId, answer, errors, refusals
from service.http.attachments import attachment
from service.http.paging import Cursor, Limit, Search, decode_cursor, encode_cursor
from service.identity.principal import Reads
from service.schemas.answers import ChampionPage, LeaderboardPage, SummaryPage
from service.schemas.fields import ProblemRef
from service.summaries import GROUPS, group_summaries

router = APIRouter(tags=["leaderboard"])

Name = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]+$")]
Order = Annotated[Sort, Query(description="Greatest speedup or share of roofline, newest, or by the Problem's name.")]
Only = Annotated[ProblemRef | None, Query(description="Only Champions of this Problem.")]


def leaderboard_filter(
    q: Search = None,
    device: Annotated[DeviceKind | None, Query(description="A kind of device.")] = None,
    device_name: Annotated[Name, Query(description="The name of a device, exactly.")] = None,
    language: Annotated[Language | None, Query(description="The language of the kernel.")] = None,
    proposer: Annotated[Name, Query(description="The name of a Proposer or of a model.")] = None,
    family: Annotated[Family | None, Query(description="The family of the Problem's operation.")] = None,
) -> Filter:
    """Read the filter from the query string."""
    return Filter(
        text=q or "",
        kind=device.value if device is not None else "",
        device=device_name or "",
        language=language.value if language is not None else "",
        proposer=proposer or "",
        family=family.value if family is not None else "",
    )


FilterParameters = Annotated[Filter, Depends(leaderboard_filter)]


@router.get(
    "/leaderboard",
    operation_id="list_leaderboard",
    response_model=LeaderboardPage,
    responses=errors(),
    summary="Read the leaderboard",
)
def list_champions(
    context: Ctx,
    who: Reads,
    only: FilterParameters,
    problem_id: Only = None,
    sort: Order = "speedup",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List standing Champions: confirmed speedups over the fastest Baseline."""
    list_name = f"leaderboard:{only!r}:{problem_id}:{sort}"
    after = decode_cursor(list_name, cursor)
    with read_session(context.engine) as session:
        found = leaderboard.rows(
            session, who.project_id, limit=limit + 1, problem_id=problem_id, only=only, sort=sort, after=after
        )
    more = encode_cursor(list_name, found[limit - 1].id) if len(found) > limit else None
    return answer(LeaderboardPage(items=found[:limit], next_cursor=more))


@router.get(
    "/leaderboard.csv",
    operation_id="download_leaderboard",
    response_class=Response,
    responses={
        **errors(),
        200: {
            "description": f"At most {MOST_ROWS} rows under one row of names.",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        },
    },
    summary="Download the leaderboard",
)
def as_csv(
    context: Ctx, who: Reads, only: FilterParameters, problem_id: Only = None, sort: Order = "speedup"
) -> Response:
    """Send comma-separated values; cells that a spreadsheet would run as formulas become text."""
    with read_session(context.engine) as session:
        found = leaderboard.rows(session, who.project_id, limit=MOST_ROWS, problem_id=problem_id, only=only, sort=sort)
    return attachment(LEADERBOARDS["csv"], found, "leaderboard")


@router.get(
    "/leaderboard/summary",
    operation_id="summarise_leaderboard",
    response_model=SummaryPage,
    responses=errors(),
    summary="Summarise the leaderboard",
)
def summarise(
    context: Ctx,
    who: Reads,
    only: FilterParameters,
    by: Annotated[Literal[GROUPS], Query(description="The grouping.")] = "everything",  # type: ignore[valid-type]
) -> Response:
    """Count Champions and summarise their speedups, overall or by group: the largest group first."""
    with read_session(context.engine) as session:
        found = leaderboard.rows(session, who.project_id, limit=MOST_ROWS, only=only)
    return answer(SummaryPage(items=group_summaries(found, by), next_cursor=None))


@router.get(
    "/problems/{id}/champions",
    operation_id="list_champions",
    response_model=ChampionPage,
    responses=errors(404),
    summary="List the Champions of a Problem",
)
def list_history(context: Ctx, who: Reads, id: ProblemId, limit: Limit = 100) -> Response:
    """List every promotion on every device, newest first, past ones too."""
    with read_session(context.engine) as session, refusals():
        problems.get(session, id, project_id=who.project_id)
        found = history.of_problem(session, id, limit=limit)
    return answer(ChampionPage(items=found, next_cursor=None))
