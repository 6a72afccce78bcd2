"""The first page: the Champion of every Problem on every device, as a list, a map, by family, and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from db.engine import read_session
from db.repositories import leaderboard, runs
from db.repositories.leaderboard import Filter, Sort
from db.views.rows import LeaderboardEntry
from evaluator.screening.family import Family
from evaluator.types import Language
from service.context import Ctx
from service.exports import LEADERBOARDS
from service.exports.leaderboard_csv import MOST_ROWS
from service.http.attachments import attachment
from service.http.paging import Cursor, decode_cursor, encode_cursor
from service.identity.principal import Reads
from service.rendering.templates import page
from service.schemas.fields import Text
from service.summaries import group_summaries

router = APIRouter()

PAGE = 50
MAP = 200
SORTS: tuple[tuple[Sort, str], ...] = (
    ("speedup", "Speedup"),
    ("roofline", "Roofline"),
    ("newest", "Confirmed"),
    ("problem", "Problem"),
)

View = Literal["list", "map", "families"]
VIEWS: tuple[tuple[View, str], ...] = (("list", "List"), ("map", "Problems × devices"), ("families", "Families"))
Words = Annotated[Text, Query(max_length=100)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardQuery:
    """The reader's filters and order; `address` makes a permalink of them."""

    only: Filter
    sort: Sort
    view: View

    def address(self, path: str = "/", **changes: str) -> str:
        """Return a link to the same query, with some fields changed."""
        given = {
            "q": self.only.text,
            "device": self.only.device,
            "language": self.only.language,
            "proposer": self.only.proposer,
            "family": self.only.family,
            "sort": self.sort if self.sort != "speedup" else "",
            "view": self.view if self.view != "list" else "",
        }
        parts = {key: value for key, value in {**given, **changes}.items() if value}
        return f"{path}?{urlencode(parts)}" if parts else path


def leaderboard_query(
    q: Words = "",
    device: Words = "",
    language: Words = "",
    proposer: Words = "",
    family: Words = "",
    sort: Sort = "speedup",
    view: View = "list",
) -> LeaderboardQuery:
    """Read the query string."""
    only = Filter(text=q.strip(), device=device, language=language, proposer=proposer, family=family)
    return LeaderboardQuery(only=only, sort=sort, view=view)


QueryParameters = Annotated[LeaderboardQuery, Depends(leaderboard_query)]


@router.get("/")
def show(context: Ctx, who: Reads, query: QueryParameters, cursor: Cursor = None) -> Response:
    """Show the leaderboard; for an empty one, the next step to take."""
    list_name = f"leaderboard:{query.address()}"[:300]
    after = decode_cursor(list_name, cursor)
    as_map = query.view == "map"
    summed = query.view == "families"
    limit = MAP if as_map else MOST_ROWS if summed else PAGE
    sort: Sort = "problem" if as_map else query.sort
    with read_session(context.engine) as session:
        found = leaderboard.rows(session, who.project_id, limit=limit + 1, only=query.only, sort=sort, after=after)
        shown = found[:limit]
        trends = leaderboard.trends(session, shown) if query.view == "list" else {}
        devices = leaderboard.devices(session, who.project_id)
        # Only for an empty leaderboard.
        newest = () if shown else runs.list(session, who.project_id, limit=20)
    more = encode_cursor(list_name, shown[-1].id) if len(found) > limit else None
    return page(
        "leaderboard.html",
        section="leaderboard",
        query=query,
        rows=shown,
        grid=_grid(shown) if as_map else None,
        families=group_summaries(shown, "family") if summed else None,
        kinds=[family.value for family in Family],
        views=VIEWS,
        trends=trends,
        devices=devices,
        languages=[language.value for language in Language],
        sorts=SORTS,
        top=max((row.against_fastest.interval.high for row in shown), default=1.25),
        active=[run for run in newest if not run.status.ended],
        more=more,
        first=cursor is None,
    )


@router.get("/leaderboard.csv")
def as_csv(context: Ctx, who: Reads, query: QueryParameters) -> Response:
    """Send the same rows as a file of comma-separated values."""
    with read_session(context.engine) as session:
        found = leaderboard.rows(session, who.project_id, limit=MOST_ROWS, only=query.only, sort=query.sort)
    return attachment(LEADERBOARDS["csv"], found, "leaderboard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Problems down, devices across; a cell is the Champion, or None."""

    devices: tuple[str, ...]
    rows: tuple[tuple[LeaderboardEntry, tuple[LeaderboardEntry | None, ...]], ...]


def _grid(found: Sequence[LeaderboardEntry]) -> Grid:
    devices = tuple(sorted({row.device_name for row in found}))
    by_problem: dict[str, dict[str, LeaderboardEntry]] = {}
    for row in found:
        by_problem.setdefault(row.problem_id, {})[row.device_name] = row
    rows = tuple(
        (next(iter(cells.values())), tuple(cells.get(device) for device in devices)) for cells in by_problem.values()
    )
    return Grid(devices=devices, rows=rows)
