"""From a new Run to a running one: admission and Baselines, each done once and reused."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.packing import load_baseline
from db.queues import PROPOSE, JobKind, Nudge
from db.repositories import champions
from db.tables.core import AdmissionRow, BaselineRow, EvaluationRow, RunRow
from db.tables.queue import DeviceRow
from db.transitions.events import emit
from db.transitions.work.enqueue import enqueue_advance, enqueue_job
from evaluator.schema import from_json
from evaluator.types import SCHEMA_VERSION, BaselineReport, DeviceKind
from evolution.types import Budget, RunKind, RunStatus


def progress(s: Session, run: RunRow, status: RunStatus) -> None:
    """Move a locked Run to a status. A paused Run stays paused and resumes with the new status."""
    if run.status == RunStatus.PAUSED:
        run.paused_from = status
        return
    run.status = status
    emit(s, run.id, "run.status", status=status.value)


def seek_admission(s: Session, run: RunRow) -> list[Nudge]:
    """Find a valid Admission, join an open one, or order one. Proposers may prepare meanwhile."""
    row, nudges = _seek(s, run, AdmissionRow, "accepted", JobKind.ADMIT)
    run.admission_id = row.id
    if row.state != "accepted":
        return [*nudges, PROPOSE] if run.kind == RunKind.OPTIMISE else nudges
    emit(s, run.id, "problem.admitted", problem_id=run.problem_id, admission_id=row.id, cached=True)
    return seek_baseline(s, run)


def seek_baseline(s: Session, run: RunRow) -> list[Nudge]:
    """Find Baselines timed on a present device and environment, join an open timing, or order one; start the search.

    Proposals and builds need no Baselines. Judgements wait for them (`work.jobs.claim`).
    """
    row, nudges = _seek(s, run, BaselineRow, "timed", JobKind.BASELINE)
    run.baseline_id = row.id
    if row.body is not None:
        emit_baselines(s, run, row.id, load_baseline(row.body), cached=True)
    return [*nudges, *start(s, run)]


def emit_baselines(
    s: Session, run: RunRow, baseline_id: str, report: BaselineReport, *, cached: bool, rescaled: float | None = None
) -> None:
    """Tell a Run of its Baselines: the fastest ones, the times of all, and modes that still compile.

    `rescaled` is the factor from the speedups so far to estimates over a Baseline that overtook the others.
    """
    names = sorted({t.workload for t in report.times})
    best = {name: report.fastest(name) for name in names}
    emit(
        s,
        run.id,
        "baseline.timed",
        baseline_id=baseline_id,
        device=report.device.name,
        fastest={name: {"mode": time.mode, "median_us": time.median_us} for name, time in best.items()},
        times_us={name: {t.mode: t.median_us for t in report.times if t.workload == name} for name in names},
        rescaled=rescaled,
        pending=list(report.pending),
        cached=cached,
    )


Found = TypeVar("Found", AdmissionRow, BaselineRow)
_PREFIX = {JobKind.ADMIT: "adm", JobKind.BASELINE: "base"}


def _seek(s: Session, run: RunRow, table: type[Found], good: str, kind: JobKind) -> tuple[Found, list[Nudge]]:
    """Return the newest row in state `good` for a present environment, else an open one, else a new one and its Job."""
    rows = s.scalars(
        select(table)
        .where(
            table.problem_id == run.problem_id,
            table.device_kind == run.device_kind,
            table.state.in_((good, "open")),
        )
        .order_by(table.id.desc())
    ).all()
    keys = _environments(s, run.device_kind)
    holds = [row for row in rows if row.state == good and (not keys or row.environment_key in keys)]
    under_way = [row for row in rows if row.state == "open"]
    if holds or under_way:
        return (holds or under_way)[0], []
    row = table(
        id=new_id(_PREFIX[kind]),
        problem_id=run.problem_id,
        device_kind=run.device_kind,
        state="open",
        schema_version=SCHEMA_VERSION,
        created_at=now(s),
    )
    s.add(row)
    s.flush()
    return row, enqueue_job(s, kind, row.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind))


def _environments(s: Session, device_kind: str) -> set[str]:
    """Return environment keys of the devices of a kind; empty before any has registered (any cached result will do)."""
    return set(s.scalars(select(DeviceRow.environment_key).where(DeviceRow.kind == device_kind)))


def start(s: Session, run: RunRow) -> list[Nudge]:
    """Start the search of an admitted Problem. The wall clock starts here."""
    moment = now(s)
    run.started_at = moment
    if run.paused_at is not None:
        run.paused_at = moment
    wall_s = from_json(Budget, run.budget).wall_s
    run.deadline_at = None if wall_s is None else moment + timedelta(seconds=wall_s)
    standing = champions.standing(s, run.problem_id, DeviceKind(run.device_kind))
    run.champion_id = run.warm_id = standing.candidate_id if standing is not None else None
    progress(s, run, RunStatus.RUNNING)
    return enqueue_builds(s, run) if run.kind == RunKind.JUDGE else enqueue_advance(s, run)


def enqueue_builds(s: Session, run: RunRow) -> list[Nudge]:
    """Build the Candidates that were submitted before the Run could begin."""
    found = s.scalars(
        select(EvaluationRow.id).where(EvaluationRow.run_id == run.id, EvaluationRow.state == "building")
    ).all()
    nudges: list[Nudge] = []
    for id in found:
        nudges += enqueue_job(
            s, JobKind.BUILD, id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind), run=run
        )
    return nudges
