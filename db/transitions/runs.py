"""Writes of Runs."""

from __future__ import annotations

from sqlalchemy import update
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import Conflict
from db.ids import new_id
from db.queues import Nudge
from db.repositories import runs
from db.tables.core import RunRow
from db.tables.queue import JobRow
from db.transitions.access.projects import check_quota, check_spending
from db.transitions.begin import seek_admission
from db.transitions.events import emit
from db.transitions.seeds import check_seeds
from db.transitions.work.enqueue import end_run, enqueue_advance
from db.transitions.work.locks import lock_problem, lock_run
from evaluator.schema import to_json
from evaluator.types import DeviceKind
from evolution.types import Budget, EndReason, Run, RunConfig, RunStatus


def create_run(
    s: Session,
    project_id: str,
    problem_id: str,
    device_kind: DeviceKind,
    budget: Budget,
    config: RunConfig,
    *,
    forked_from: str | None = None,
) -> tuple[Run, list[Nudge]]:
    """Start a Run: queued, with its admission ordered or reused from an earlier one.

    Raise NotFound (the Problem, or a seed Candidate of another project), Conflict (a seed of another Problem),
    QuotaExceeded.
    """
    check_quota(s, project_id)
    lock_problem(s, problem_id, project_id)
    check_seeds(s, project_id, problem_id, config.seed_candidates)
    row = RunRow(
        id=new_id("run"),
        project_id=project_id,
        problem_id=problem_id,
        device_kind=device_kind,
        status=RunStatus.QUEUED,
        budget=to_json(budget),
        config=to_json(config),
        forked_from=forked_from,
        created_at=now(s),
    )
    s.add(row)
    s.flush()
    emit(
        s,
        row.id,
        "run.created",
        problem_id=problem_id,
        device=device_kind.value,
        budget=to_json(budget),
        forked_from=forked_from,
    )
    nudges = seek_admission(s, row)
    return runs.get(s, row.id), nudges


def cancel_run(s: Session, run_id: str, *, project_id: str | None = None) -> tuple[Run, list[Nudge]]:
    """End a Run now: ready Jobs are dropped, work in flight is stored. An ended Run stays as it is. Raise NotFound."""
    run = lock_run(s, run_id, project_id)
    if not RunStatus(run.status).ended:
        end_run(s, run, RunStatus.CANCELLED, EndReason.CANCELLED, "Cancelled on request.")
    return runs.get(s, run_id), []


def pause_run(s: Session, run_id: str, *, project_id: str | None = None, why: str = "") -> tuple[Run, list[Nudge]]:
    """Pause a Run: nothing new starts, work in flight is stored, the wall clock stops. Raise NotFound, Conflict.

    `why` is the Run's message until it resumes.
    """
    run = lock_run(s, run_id, project_id)
    if RunStatus(run.status).ended:
        raise Conflict(f"run {run_id} has ended ({run.status}); only a live run can be paused")
    if run.status != RunStatus.PAUSED:
        run.paused_from, run.status, run.paused_at = run.status, RunStatus.PAUSED, now(s)
        run.message = why
        _flip(s, run, "ready", "held")
        emit(s, run.id, "run.status", status=RunStatus.PAUSED.value, **({"message": why} if why else {}))
    return runs.get(s, run_id), []


def resume_run(s: Session, run_id: str, *, project_id: str | None = None) -> tuple[Run, list[Nudge]]:
    """Resume a paused Run; one that is not paused stays as it is.

    Raise NotFound, Conflict (it has ended), QuotaExceeded.
    """
    run = lock_run(s, run_id, project_id)
    if RunStatus(run.status).ended:
        raise Conflict(f"run {run_id} has ended ({run.status}); start a new one")
    if run.status != RunStatus.PAUSED:
        return runs.get(s, run_id), []
    check_spending(s, run.project_id)
    assert run.paused_at is not None
    assert run.paused_from is not None
    if run.started_at is not None:
        rest = now(s) - run.paused_at
        run.paused_s += rest.total_seconds()
        run.deadline_at = None if run.deadline_at is None else run.deadline_at + rest
    run.status, run.paused_from, run.paused_at, run.message = run.paused_from, None, None, ""
    emit(s, run.id, "run.status", status=run.status)
    nudges = _flip(s, run, "held", "ready") + enqueue_advance(s, run)
    return runs.get(s, run_id), sorted(set(nudges))


def _flip(s: Session, run: RunRow, old: str, new: str) -> list[Nudge]:
    changed = s.scalars(
        update(JobRow)
        .where(JobRow.run_id == run.id, JobRow.state == old)
        .values(state=new, nudged_at=now(s))
        .returning(JobRow.queue)
        .execution_options(synchronize_session="fetch")
    )
    return list(changed)
