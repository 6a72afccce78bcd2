"""One Candidate as a page: where it comes from, what it was judged on, and its source."""

from __future__ import annotations

import json

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, evaluations, problems, runs
from evaluator.schema import to_json
from evaluator.types import Evaluation, Measurement, Stage
from service.answering import CandidateId, refusals
from service.context import Ctx
from service.pages.highlighting import highlight
from service.pages.rendering import page
from service.principal import Reads
from service.routers.downloads import speaking

router = APIRouter()


@router.get("/candidates/{id}")
def show(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """The page of one Candidate."""
    with read_session(context.engine) as session, refusals():
        view = candidates.get(session, id, project_id=who.project_id)
        problem = problems.get(session, view.problem_id)
        run = runs.get(session, view.run_id)
        source = candidates.source(session, id).source
        found = evaluations.for_candidate(session, id)
    official = speaking(found)
    return page(
        "candidate.html",
        section="runs",
        candidate=view,
        problem=problem,
        run=run,
        source=highlight(source),
        lines=source.count("\n") + 1,
        official=official,
        confirmed=official is not None and official.stage is Stage.CONFIRM,
        held_out={w.name for w in problem.problem.workloads if w.held_out},
        measurements=[(m, fastest(m)) for m in (official.measurements if official else ())],
        evaluations=[(evaluation, evidence(evaluation)) for evaluation in reversed(found)],
    )


def fastest(measurement: Measurement) -> str | None:
    """The mode of the fastest Baseline of one Workload."""
    if not measurement.baselines:
        return None
    return min(measurement.baselines, key=lambda time: time.median_us).mode


def evidence(evaluation: Evaluation) -> str:
    """The evidence as indented JSON, for people who want to see all of it."""
    return json.dumps(to_json(evaluation.evidence), indent=2, ensure_ascii=False)[:100_000]
