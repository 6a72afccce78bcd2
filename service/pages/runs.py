"""Runs as pages: the list, and one Run under an address for each of its tabs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response

from db.engine import read_session
from db.repositories import archive, candidates, events, history, memory, problems, runs
from db.repositories.work import queue
from db.views.rows import ChampionView, Milestone, ProblemView
from evaluator.types import Verdict
from evolution.types import EndReason, Run, RunStatus
from service.context import Ctx
from service.http.answering import RunId, answer, refusals
from service.http.paging import Cursor, decode_cursor, encode_cursor
from service.identity.principal import Principal, Reads, Submits
from service.pages import lineage
from service.pages.forms import extend_request
from service.rendering.charts.archive_map import archive_map
from service.rendering.charts.funnel import funnel
from service.rendering.charts.gauges import gauges
from service.rendering.charts.lines import staircase, value_range
from service.rendering.templates import page
from service.routers import runs as run_routes
from service.routers import steering
from service.schemas.fields import Text

router = APIRouter()

PAGE = 50
NEWEST = 12
TABS = (
    ("", "Overview"),
    ("candidates", "Candidates"),
    ("archive", "Archive"),
    ("lineage", "Lineage"),
    ("credit", "Credit"),
    ("queue", "Queue"),
)
EXTENDABLE = (EndReason.BUDGET, EndReason.STAGNATED, EndReason.NO_IMPROVEMENT, EndReason.TARGET_REACHED)
LIVE = tuple(status for status in RunStatus if not status.ended)
AXES = {"evaluations": "evaluations", "seconds": "wall_s", "dollars": "usd"}
Axis = Annotated[Literal["evaluations", "seconds", "dollars"], Query()]
Order = Annotated[Literal["newest", "fastest"], Query()]


@router.get("/runs")
def show_all(
    context: Ctx,
    who: Reads,
    q: Annotated[Text, Query(max_length=100)] = "",
    status: Annotated[Literal["", "live", "finished", "failed", "cancelled"], Query()] = "",
    cursor: Cursor = None,
) -> Response:
    """List Runs, newest first."""
    list_name = f"runs:{q}:{status}"
    after = decode_cursor(list_name, cursor)
    statuses = LIVE if status == "live" else (RunStatus(status),) if status else ()
    only = runs.Filter(text=q.strip() or None, statuses=statuses)
    with read_session(context.engine) as session, refusals():
        found = runs.list(session, who.project_id, limit=PAGE + 1, after=after, only=only)
        shown = found[:PAGE]
        names = problems.names(session, {run.problem_id for run in shown})
        best = candidates.get_many(session, [run.best_id for run in shown if run.best_id is not None])
        crowned = history.newest_champions(session, [run.id for run in shown if run.champion_id is not None])
    return page(
        "runs.html",
        section="runs",
        runs=shown,
        names=names,
        best={one.id: one for one in best},
        crowned=crowned,
        more=encode_cursor(list_name, shown[-1].id) if len(found) > PAGE else None,
        first=cursor is None,
        busy=cursor is None and any(not run.status.ended for run in shown),
        q=q,
        wanted=status,
    )


@router.get("/runs/{id}")
def overview(context: Ctx, who: Reads, id: RunId, x: Axis = "evaluations") -> Response:
    """Show the best so far, the funnel, the newest Candidates and the spend."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "")
        run = values["run"]
        milestones = history.milestones(session, id)
        tallies = history.tallies(session, id)
        arms = history.arms(session, id)
        crowned = values["crowned"]
        values |= {
            "best": candidates.get(session, run.best_id) if run.best_id is not None else None,
            "newest": candidates.list(session, id, limit=NEWEST),
            "gates": funnel(arms, tallies, (_confirms(tallies), len(crowned)), ended=run.status.ended),
            "gauges": gauges(run),
            "taught": memory.lessons_of(session, id) if run.status.ended else (),
            "axis": x,
            "axes": tuple(AXES),
            "chart": staircase(milestones, AXES[x], _ends(run, milestones, tallies)[x]),
        }
    return page("run_overview.html", **values)


@router.get("/runs/{id}/progress")
def progress(context: Ctx, who: Reads, id: RunId) -> Response:
    """Return the numbers of the chart, for the script that draws it."""
    with read_session(context.engine) as session, refusals():
        run = runs.get(session, id, project_id=who.project_id)
        found = history.milestones(session, id)
        tallies = history.tallies(session, id)
    bottom, top = value_range(found)
    points = [
        {
            "evaluations": m.evaluations,
            "seconds": m.wall_s,
            "dollars": m.usd,
            "speedup": m.speedup.value,
            "low": m.speedup.interval.low,
            "high": m.speedup.interval.high,
            "confirmed": m.confirmed,
            "number": m.number,
        }
        for m in found
    ]
    value = {"points": points, "ends": _ends(run, found, tallies), "bottom": bottom, "top": top}
    return answer(value, headers={"Cache-Control": "no-store"})


@router.get("/runs/{id}/candidates")
def list_candidates(
    context: Ctx,
    who: Reads,
    id: RunId,
    order: Order = "newest",
    verdict: Annotated[Verdict | Literal[""], Query()] = "",
    cursor: Cursor = None,
) -> Response:
    """List newest first, or the passed ones, fastest first."""
    list_name = f"candidates:{id}:{order}:{verdict}"
    after = decode_cursor(list_name, cursor)
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "candidates")
        found = candidates.list(
            session,
            id,
            limit=PAGE + 1,
            after=after,
            by_speedup=order == "fastest",
            only=candidates.Filter(verdict=verdict or None),
        )
        seen = {tally.verdict for tally in history.tallies(session, id)}
    return page(
        "run_candidates.html",
        **values,
        found=found[:PAGE],
        more=encode_cursor(list_name, found[PAGE - 1].id) if len(found) > PAGE else None,
        order=order,
        verdict=verdict,
        verdicts=[one for one in Verdict if one in seen or one is verdict],
        first=cursor is None,
        top=_top([one.speedup.interval.high for one in found if one.speedup is not None]),
    )


@router.get("/runs/{id}/archive")
def show_archive(context: Ctx, who: Reads, id: RunId) -> Response:
    """Show the elites as a map of islands and Niches."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "archive")
        found = archive.elites(session, id)
    return page("run_archive.html", **values, map=archive_map(found, values["run"].config.islands))


@router.get("/runs/{id}/lineage")
def show_lineage(context: Ctx, who: Reads, id: RunId) -> Response:
    """Show the elites and the Champion with their ancestors, as a tree."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "lineage")
        trees = lineage.of_run(session, values["run"])
    return page("run_lineage.html", **values, trees=trees)


@router.get("/runs/{id}/credit")
def show_credit(context: Ctx, who: Reads, id: RunId) -> Response:
    """Show the costs and results of every Proposer and Operator."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "credit")
        arms = history.arms(session, id)
    return page("run_credit.html", **values, arms=arms, most=max((arm.reward for arm in arms), default=0.0))


@router.get("/runs/{id}/queue")
def show_queue(context: Ctx, who: Reads, id: RunId) -> Response:
    """Show the open work, and the device time by stage."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "queue")
        jobs = queue.of_run(session, id)
        tallies = history.tallies(session, id)
    spent = {kind: sum(t.device_s for t in tallies if t.kind == kind) for kind in ("judge", "confirm")}
    return page("run_queue.html", **values, jobs=jobs, spent=spent, gauges=gauges(values["run"]))


@router.post("/runs/{id}/extend")
def extend(
    context: Ctx,
    who: Submits,
    request: Request,
    id: RunId,
    candidates: Annotated[str, Form(max_length=20)] = "",
    minutes: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Give the Run more budget, as the API does, then show it."""
    steering.extend(context, who, request, id, extend_request(candidates, minutes))
    return RedirectResponse(f"/runs/{id}", status_code=303)


@router.post("/runs/{id}/{act}")
def change(
    context: Ctx, who: Submits, request: Request, id: RunId, act: Literal["pause", "resume", "cancel"]
) -> Response:
    """Change a Run's state, as the API does, then show it."""
    {"pause": run_routes.pause, "resume": run_routes.resume, "cancel": run_routes.cancel}[act](
        context, who, request, id
    )
    return RedirectResponse(f"/runs/{id}", status_code=303)


def _frame(session: Session, who: Principal, run_id: str, tab: str) -> dict[str, Any]:
    """Return the values at the top of every tab."""
    run = runs.get(session, run_id, project_id=who.project_id)
    problem: ProblemView = problems.get(session, run.problem_id)
    crowned: tuple[ChampionView, ...] = history.champions_of(session, run_id)
    return {
        "section": "runs",
        "run": run,
        "problem": problem,
        "crowned": crowned,
        "champion": crowned[0] if crowned else None,
        "tab": tab,
        "tabs": TABS,
        "doing": "" if run.status.ended else events.doing(session, run_id),
        "extendable": not run.status.ended or run.end_reason in EXTENDABLE,
    }


def _confirms(tallies: Any) -> int:
    return sum(tally.number for tally in tallies if tally.kind == "confirm")


def _ends(run: Run, milestones: tuple[Milestone, ...], tallies: Any) -> dict[str, float]:
    """Return the present end of every axis."""
    evaluations = sum(tally.number for tally in tallies)
    return {"evaluations": float(evaluations), "seconds": run.spend.wall_s, "dollars": run.spend.usd}


def _top(highs: list[float]) -> float:
    """Return the upper end of a scale for many intervals; the widest few may be cut off."""
    ordered = sorted(highs)
    return max(1.25, ordered[int(len(ordered) * 0.9)]) if ordered else 1.25
