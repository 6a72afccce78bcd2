"""One Problem as a page: the reference, its Workloads, its Baselines, and the history of its Champions."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories import baselines, history, leaderboard, problems, runs
from evaluator.types import BaselineReport, BaselineTime, DeviceKind
from service.context import Ctx
from service.http.answering import ProblemId, refusals
from service.identity.principal import Reads
from service.rendering.highlighting import highlight
from service.rendering.templates import page

router = APIRouter()

RUNS = 10


@router.get("/problems/{id}")
def show(context: Ctx, who: Reads, id: ProblemId) -> Response:
    with read_session(context.engine) as session, refusals():
        view = problems.get(session, id, project_id=who.project_id)
        champions = leaderboard.rows(session, who.project_id, problem_id=id)
        past = history.of_problem(session, id)
        reports = [report for kind in DeviceKind if (report := baselines.newest(session, id, kind)) is not None]
        facts = {fact.workload: fact for kind in DeviceKind for fact in problems.facts(session, id, kind)}
        recent = runs.list(session, who.project_id, limit=RUNS, only=runs.Filter(problem_id=id))
    ratios = [row.against_fastest for row in champions] + [row.against_fastest for row in past]
    return page(
        "problem.html",
        section="leaderboard",
        view=view,
        problem=view.problem,
        source=highlight(view.problem.source),
        champions=champions,
        past=past,
        top=max((ratio.interval.high for ratio in ratios), default=1.25),
        reports=[(report, _by_workload(report)) for report in reports],
        facts=facts,
        recent=recent,
    )


def _by_workload(report: BaselineReport) -> list[tuple[str, list[BaselineTime], float]]:
    """Yield (Workload, its times with the fastest first, the slowest upper end) of a report."""
    names = dict.fromkeys(time.workload for time in report.times)
    rows = []
    for name in names:
        times = sorted((time for time in report.times if time.workload == name), key=lambda time: time.median_us)
        rows.append((name, times, max(time.interval_us.high for time in times)))
    return rows
