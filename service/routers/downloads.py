"""Downloads: the best kernel of a Run, or of a Problem on a device kind, as one self-contained file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, evaluations, leaderboard, problems, runs
from evaluator.types import DeviceKind, Evaluation, Stage, Verdict
from service.answering import ProblemId, RunId, errors, refusals
from service.context import Ctx
from service.errors import NotFound
from service.exports.python_file import Export, build, file_name
from service.principal import Principal, Reads

router = APIRouter(tags=["downloads"])

_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A Python file. `python FILE --check` verifies it against the reference that it carries.",
        "content": {"text/x-python": {"schema": {"type": "string"}}},
        "headers": {
            "Content-Disposition": {"schema": {"type": "string"}},
            "Repr-Digest": {"schema": {"type": "string"}, "description": "SHA-256 of the file (RFC 9530)."},
        },
    }
}


@router.get(
    "/runs/{id}/download",
    operation_id="download_run",
    response_class=Response,
    responses={**_FILE, **errors(404)},
    summary="Download the best kernel of a Run",
)
def of_run(context: Ctx, who: Reads, id: RunId) -> Response:
    """The Champion; where there is none, the best Candidate so far, and the file says that it is not confirmed."""
    with read_session(context.engine) as session, refusals():
        run = runs.get(session, id, project_id=who.project_id)
        best = run.champion_id or run.best_id
        if best is None:
            raise NotFound("No Candidate of this Run has passed yet.", slug="no-kernel", title="No kernel yet")
        export = collect(who, session, best, run.device_kind)
    return send(export)


@router.get(
    "/problems/{id}/download",
    operation_id="download_problem",
    response_class=Response,
    responses={**_FILE, **errors(404)},
    summary="Download the Champion of a Problem",
)
def of_problem(
    context: Ctx,
    who: Reads,
    id: ProblemId,
    device: Annotated[DeviceKind, Query(description="For which kind of device.")],
) -> Response:
    """The fastest Champion on that kind of device."""
    with read_session(context.engine) as session, refusals():
        problems.get(session, id, project_id=who.project_id)
        champions = leaderboard.rows(session, who.project_id, problem_id=id)
        best = next((row for row in champions if row.device_kind is device), None)
        if best is None:
            raise NotFound(
                f"This Problem has no Champion on {device.value} yet.", slug="no-kernel", title="No kernel yet"
            )
        export = collect(who, session, best.candidate_id, device)
    return send(export)


def collect(who: Principal, session: Session, candidate_id: str, device_kind: DeviceKind) -> Export:
    """Everything that the file of a Candidate says. Raises db.errors.NotFound."""
    view = candidates.get(session, candidate_id, project_id=who.project_id)
    evaluation = speaking(evaluations.for_candidate(session, candidate_id))
    return Export(
        problem=problems.get(session, view.problem_id, project_id=who.project_id).problem,
        candidate=candidates.source(session, candidate_id),
        candidate_id=candidate_id,
        device_kind=device_kind,
        evaluation=evaluation,
        confirmed=view.confirmed and evaluation is not None and evaluation.stage is Stage.CONFIRM,
        facts=problems.facts(session, view.problem_id, device_kind),
        dated=view.created_at,
        proposed_by=" ".join(part for part in (view.proposer, view.model, f"({view.operator})") if part),
    )


def speaking(found: Sequence[Evaluation]) -> Evaluation | None:
    """The Evaluation that speaks for a Candidate: the newest passed confirmation, else the newest that passed."""
    passed = [evaluation for evaluation in found if evaluation.verdict is Verdict.PASSED]
    confirmations = [evaluation for evaluation in passed if evaluation.stage is Stage.CONFIRM]
    return next(iter(reversed(confirmations or passed)), None)


def send(export: Export) -> Response:
    """The file as a download, with its digest."""
    data = build(export).encode("utf-8", "replace")
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    headers = {
        "Content-Disposition": f'attachment; filename="{file_name(export.problem.name, export.device_kind)}"',
        "Repr-Digest": f"sha-256=:{digest}:",
        "Cache-Control": "no-cache",
    }
    return Response(data, headers=headers, media_type="text/x-python")
