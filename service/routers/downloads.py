"""Downloads: the best kernel of a Run, or of a Problem on a device kind, as one file; a whole Run as an archive."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AfterValidator
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from db.engine import read_session
from db.recording import export_run
from db.repositories import candidates, evaluations, leaderboard, problems, runs
from evaluator.types import DeviceKind, Evaluation, Stage, Verdict
from prompts.redact import without_held_out
from service.context import Ctx
from service.errors import Conflict, NotFound, TooManyRequests
from service.exports import DEFAULT, KERNELS, Export, Unsupported, file_stem
from service.http.answering import ProblemId, RunId, errors, refusals
from service.http.attachments import attachment
from service.identity.principal import Principal, Reads

router = APIRouter(tags=["downloads"])

_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": " ".join(form.about for form in KERNELS.values()),
        "content": {form.media_type: {"schema": form.schema} for form in KERNELS.values()},
        "headers": {
            "Content-Disposition": {"schema": {"type": "string"}},
            "Repr-Digest": {"schema": {"type": "string"}, "description": "SHA-256 of the file (RFC 9530)."},
        },
    }
}


def _in_table(name: str) -> str:
    if name not in KERNELS:
        raise ValueError(f"there is no such format; there are: {', '.join(KERNELS)}")
    return name


KernelFormat = Annotated[
    str,
    Query(
        alias="format",
        description="The format of the file.",
        json_schema_extra={"enum": list(KERNELS)},
    ),
    AfterValidator(_in_table),
]
HeldOut = Annotated[
    bool, Query(description="Whether the file has the workloads that are held out: not for proposers of kernels.")
]
_ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A zip of JSON lines; `manifest.json` names the SHA-256 of every other member.",
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        "headers": {"Content-Disposition": {"schema": {"type": "string"}}},
    }
}
MOST_RECORDED = 10_000
PIECE_BYTES = 1 << 16
_ONE_AT_A_TIME = threading.Lock()
"""Writing one takes a CPU core for seconds: other requests must not wait for several."""


@router.get(
    "/runs/{id}/download",
    operation_id="download_run",
    response_class=Response,
    responses={**_FILE, **errors(404, 409)},
    summary="Download the best kernel of a Run",
)
def of_run(context: Ctx, who: Reads, id: RunId, form: KernelFormat = DEFAULT, held_out: HeldOut = True) -> Response:
    """Send the Champion; without one, the best Candidate so far, and the file says that it is not confirmed."""
    with read_session(context.engine) as session, refusals():
        run = runs.get(session, id, project_id=who.project_id)
        best = run.champion_id or run.best_id
        if best is None:
            words = "No candidate of this run has passed yet: wait for one."
            if run.status.ended:
                words = "No candidate of this run passed, and it has ended: its message says why. Start another run."
            raise NotFound(words, slug="no-kernel", title="No kernel yet")
        export = collect(who, session, best, run.device_kind)
    return send(export if held_out else shown(export), form)


@router.get(
    "/problems/{id}/download",
    operation_id="download_problem",
    response_class=Response,
    responses={**_FILE, **errors(404, 409)},
    summary="Download the Champion of a Problem",
)
def of_problem(
    context: Ctx,
    who: Reads,
    id: ProblemId,
    device: Annotated[DeviceKind, Query(description="The device kind.")],
    form: KernelFormat = DEFAULT,
    held_out: HeldOut = True,
) -> Response:
    """Send the fastest Champion on that kind of device."""
    with read_session(context.engine) as session, refusals():
        problems.get(session, id, project_id=who.project_id)
        champions = leaderboard.rows(session, who.project_id, problem_id=id)
        best = next((row for row in champions if row.device_kind is device), None)
        if best is None:
            raise NotFound(
                f"This Problem has no Champion on {device.value} yet.", slug="no-kernel", title="No kernel yet"
            )
        export = collect(who, session, best.candidate_id, device)
    return send(export if held_out else shown(export), form)


@router.get(
    "/runs/{id}/recording",
    operation_id="download_recording",
    response_class=Response,
    responses={**_ARCHIVE, **errors(404, 409)},
    summary="Download a whole Run",
)
def whole_run(context: Ctx, who: Reads, id: RunId) -> Response:
    """Send prompts and replies, verdicts, samples and events, so that the Run can be replayed.

    A live Run is sent as far as it is. A Run of more than 10,000 Candidates is read through its lists instead.
    """
    with read_session(context.engine) as session, refusals():
        run = runs.get(session, id, project_id=who.project_id)
        if run.spend.candidates > MOST_RECORDED:
            raise Conflict(
                f"This Run has {run.spend.candidates} Candidates; a recording holds at most {MOST_RECORDED}. "
                "Read its lists instead.",
                slug="run-too-large",
                title="The Run is too large for one file",
            )
        file = _recorded(session, id)
    headers = {
        "Content-Disposition": f'attachment; filename="{id}.zip"',
        "Content-Length": str(file.tell()),
        "Cache-Control": "no-cache",
    }
    return StreamingResponse(_chunks(file), headers=headers, media_type="application/zip")


def _recorded(session: Session, run_id: str) -> IO[bytes]:
    """Return a temporary file with the recording, at its end; the caller closes it. Raise TooManyRequests."""
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise TooManyRequests(
            "Another recording is being written; try again in a few seconds.", headers={"Retry-After": "5"}
        )
    with contextlib.ExitStack() as undo:
        undo.callback(_ONE_AT_A_TIME.release)
        with contextlib.ExitStack() as unwanted:
            file = unwanted.enter_context(tempfile.TemporaryFile())
            export_run(session, run_id, file)
            unwanted.pop_all()
    return file


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file from its beginning, a piece at a time, without a database connection."""
    with file:
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            yield piece


def collect(who: Principal, session: Session, candidate_id: str, device_kind: DeviceKind) -> Export:
    """Return everything that the file of a Candidate states. Raise db.errors.NotFound."""
    view = candidates.get(session, candidate_id, project_id=who.project_id)
    evaluation = deciding_evaluation(evaluations.for_candidate(session, candidate_id))
    return Export(
        problem=problems.get(session, view.problem_id, project_id=who.project_id).problem,
        candidate=candidates.source(session, candidate_id),
        candidate_id=candidate_id,
        device_kind=device_kind,
        evaluation=evaluation,
        confirmed=view.confirmed and evaluation is not None and evaluation.stage is Stage.CONFIRM,
        estimate=view.speedup if view.outdated else None,
        facts=problems.facts(session, view.problem_id, device_kind),
        dated=view.created_at,
        proposed_by=" ".join(part for part in (view.proposer, view.model, f"({view.operator})") if part),
    )


def shown(export: Export) -> Export:
    """Return the export without workloads that are held out, for proposers: there its guard is narrower, too."""
    known = {workload.name for workload in export.problem.workloads if not workload.held_out}
    problem = replace(
        export.problem,
        source=without_held_out(export.problem.source),
        workloads=tuple(workload for workload in export.problem.workloads if workload.name in known),
    )
    evaluation = export.evaluation
    measured = tuple(one for one in evaluation.measurements if one.workload in known) if evaluation else ()
    if evaluation is not None and measured:
        evaluation = replace(evaluation, measurements=measured)
    facts = tuple(fact for fact in export.facts if fact.workload in known)
    return replace(export, problem=problem, stored_hash=export.problem_hash, evaluation=evaluation, facts=facts)


def deciding_evaluation(found: Sequence[Evaluation]) -> Evaluation | None:
    """Return a Candidate's newest passed confirmation, else its newest passed Evaluation."""
    passed = [evaluation for evaluation in found if evaluation.verdict is Verdict.PASSED]
    confirmations = [evaluation for evaluation in passed if evaluation.stage is Stage.CONFIRM]
    return next(iter(reversed(confirmations or passed)), None)


def send(export: Export, form: str) -> Response:
    """Return a kernel's file in a format of the table, with its digest. Raise Conflict where that is not possible."""
    try:
        return attachment(KERNELS[form], export, file_stem(export.problem.name, export.device_kind), digest=True)
    except Unsupported as error:
        raise Conflict(f"{error}.", slug="format-unsupported", title=f"Not possible as {form}") from error
