"""Runs as pages: the list, and one Run as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, problems, runs
from db.views import CandidateView
from evaluator.types import Verdict
from evolution.types import Run
from service.answering import RunId, refusals
from service.context import Context, Ctx
from service.pages import formatting
from service.pages.charts import staircase
from service.pages.rendering import page
from service.paging import Cursor, decode_cursor, encode_cursor
from service.principal import Principal, Reads

router = APIRouter()

PAGE = 50
SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One limit of a budget and how much of it is used. `share` is between 0 and 1, None without a limit."""

    label: str
    used: str
    limit: str | None
    share: float | None


@router.get("/runs")
def show_all(context: Ctx, who: Reads, cursor: Cursor = None) -> Response:
    """Newest first."""
    after = decode_cursor("runs", cursor)
    with read_session(context.engine) as session, refusals():
        found = runs.list(session, who.project_id, limit=PAGE + 1, after=after)
        shown = found[:PAGE]
        names = {id: problems.get(session, id).name for id in {run.problem_id for run in shown}}
        best = {run.id: _best(session, run) for run in shown}
    more = encode_cursor("runs", shown[-1].id) if len(found) > PAGE else None
    return page("runs.html", section="runs", runs=shown, names=names, best=best, more=more, first=cursor is None)


@router.get("/runs/{id}")
def show(context: Ctx, who: Reads, id: RunId) -> Response:
    """One Run; the part that changes is a fragment that the page fetches again as events arrive."""
    return page("run.html", section="runs", **_values(context, who, id))


@router.get("/runs/{id}/live")
def live(context: Ctx, who: Reads, id: RunId) -> Response:
    """The part of the page that changes."""
    response = page("_run_live.html", **_values(context, who, id))
    response.headers["Cache-Control"] = "no-store"
    return response


def _values(context: Context, who: Principal, run_id: str) -> dict[str, Any]:
    with read_session(context.engine) as session, refusals():
        run = runs.get(session, run_id, project_id=who.project_id)
        problem = problems.get(session, run.problem_id)
        newest = candidates.list(session, run_id, limit=1000)
        best = _best(session, run)
    judged = sorted((c for c in newest if c.speedup is not None), key=lambda c: c.number)
    chart = staircase([(c.number, c.speedup.value) for c in judged if c.speedup is not None])
    return {
        "run": run,
        "problem": problem,
        "best": best,
        "gauges": gauges(run),
        "verdicts": _verdicts(newest),
        "candidates": newest[:SHOWN],
        "total": len(newest),
        "chart": chart,
        "title": problem.name,
    }


def _best(session: Session, run: Run) -> CandidateView | None:
    best = run.champion_id or run.best_id
    return candidates.get(session, best) if best else None


def _verdicts(found: Sequence[CandidateView]) -> list[tuple[str, int]]:
    """How many Candidates ended with each Verdict, PASSED first; those still on their way last."""
    counts: dict[Verdict | None, int] = {}
    for candidate in found:
        counts[candidate.verdict] = counts.get(candidate.verdict, 0) + 1
    order = [*Verdict, None]
    return [(verdict.value if verdict else "in flight", counts[verdict]) for verdict in order if verdict in counts]


def gauges(run: Run) -> list[Gauge]:
    """Spend against budget: what has a limit or was used."""
    budget, spend = run.budget, run.spend
    lines = [
        _gauge("Candidates", spend.candidates, budget.candidates, lambda value: formatting.count(int(value))),
        _gauge("Tokens", spend.tokens, budget.tokens, lambda value: formatting.count(int(value))),
        _gauge("Dollars", spend.usd, budget.usd, formatting.usd),
        _gauge("Device time", spend.device_s, budget.device_s, formatting.duration_s),
        _gauge("Wall time", spend.wall_s, budget.wall_s, formatting.duration_s),
    ]
    return [gauge for gauge in lines if gauge is not None]


def _gauge(label: str, used: float, limit: float | None, text: Any) -> Gauge | None:
    if limit is None:
        return Gauge(label=label, used=text(used), limit=None, share=None) if used else None
    return Gauge(label=label, used=text(used), limit=text(limit), share=min(1.0, used / limit))
