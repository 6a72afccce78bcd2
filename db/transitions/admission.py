"""Settle Admissions and Baselines: every Run that waits for them goes on."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.orm import Session

from db.clock import now
from db.packing import load_baseline, store_baseline
from db.queues import Nudge, device_queue
from db.tables.core import AdmissionRow, BaselineRow, RunRow
from db.tables.queue import JobRow
from db.transitions.access.projects import charge
from db.transitions.begin import emit_baselines, seek_baseline
from db.transitions.events import emit
from db.transitions.records.overtaken import outdate, rescale_report
from db.transitions.work.enqueue import end_run, enqueue_advance, finish_job, held_s, look_again, retry_job
from db.transitions.work.locks import lock_job, lock_problem, lock_runs
from db.views.rows import Job
from evaluator.schema import to_json
from evaluator.types import Admission, BaselineReport, DeviceKind, Verdict
from evolution.types import EndReason, RunStatus

ATTEMPTS = 3
_LIVE = (RunStatus.QUEUED, RunStatus.ADMITTING, RunStatus.PAUSED)


def settle_admission(s: Session, job: Job, admission: Admission) -> list[Nudge]:
    """Store an Admission; the waiting Runs go on, or end as problem_refused."""
    row = lock_job(s, job)
    if row is None:
        return []
    if admission.verdict is Verdict.INTERNAL_ERROR and row.attempts < ATTEMPTS:
        return retry_job(s, row, admission.reason)
    found = s.get_one(AdmissionRow, row.subject_id)
    lock_problem(s, found.problem_id)
    finish_job(s, row)
    found.body, found.settled_at = to_json(admission), now(s)
    found.environment_key = admission.environment.key if admission.environment is not None else None
    if admission.verdict is Verdict.INTERNAL_ERROR:
        return abandon_admission(s, found, f"The reference could not be tried: {admission.reason}")
    found.state = "accepted" if admission.accepted else "refused"
    nudges: list[Nudge] = []
    for run in _waiting(s, RunRow.admission_id == found.id, RunRow.baseline_id.is_(None)):
        if admission.accepted:
            emit(s, run.id, "problem.admitted", problem_id=run.problem_id, admission_id=found.id, cached=False)
            nudges += seek_baseline(s, run)
        else:
            emit(s, run.id, "problem.refused", problem_id=run.problem_id, reason=admission.reason)
            end_run(s, run, RunStatus.FAILED, EndReason.PROBLEM_REFUSED, admission.reason)
    charge(s, row.project_id, device_s=held_s(row))
    return nudges


def settle_baseline(s: Session, job: Job, report: BaselineReport) -> list[Nudge]:
    """Store a BaselineReport, and look again for modes that still compile. Judgements of its Runs may begin.

    Where a later mode is the fastest, speedups so far become estimates over it, and elites are timed again.
    """
    row = lock_job(s, job)
    if row is None:
        return []
    found = s.get_one(BaselineRow, row.subject_id)
    lock_problem(s, found.problem_id)
    known = load_baseline(found.body) if found.body is not None else None
    finish_job(s, row)
    if known == report:
        return look_again(s, row)
    charge(s, row.project_id, device_s=report.duration_s)
    nudges = look_again(s, row) if report.pending else []
    return [*nudges, *_store(s, found, known, report)]


def _store(s: Session, found: BaselineRow, known: BaselineReport | None, report: BaselineReport) -> list[Nudge]:
    """Store a report and tell the Runs. Their waiting judgements are nudged.

    Speedups of ended Runs become estimates too: pages still show them.
    """
    found.state, found.settled_at = "timed", now(s)
    found.device_name, found.environment_key = report.device.name, report.environment.key
    found.body = store_baseline(s, found.id, report)
    nudges: list[Nudge] = [device_queue(DeviceKind(found.device_kind))]
    for run in lock_runs(s, RunRow.baseline_id == found.id):
        scale = rescale_report(s, run, known, report) if known is not None else None
        if scale is not None:
            outdate(s, run, scale)
        if not RunStatus(run.status).ended:
            emit_baselines(s, run, found.id, report, cached=False, rescaled=scale.overall if scale else None)
            nudges += enqueue_advance(s, run)
    return nudges


def _going(s: Session, *conditions: object) -> list[RunRow]:
    return list(lock_runs(s, *conditions, RunRow.status.in_((*_LIVE, RunStatus.RUNNING))))


def _waiting(s: Session, *conditions: object) -> list[RunRow]:
    return list(lock_runs(s, *conditions, RunRow.status.in_(_LIVE), RunRow.started_at.is_(None)))


def abandon_admission(s: Session, found: AdmissionRow, message: str) -> list[Nudge]:
    """Fail the waiting Runs: the reference could not be tried, by an internal error."""
    found.state, found.settled_at = "failed", now(s)
    for run in _waiting(s, RunRow.admission_id == found.id, RunRow.baseline_id.is_(None)):
        end_run(s, run, RunStatus.FAILED, EndReason.INTERNAL_ERROR, message)
    return []


def abandon_baseline(s: Session, found: BaselineRow, message: str) -> list[Nudge]:
    """Fail the Runs: no Baseline could be timed, by an internal error. Go on without modes that only came later."""
    if found.body is not None:
        known = load_baseline(found.body)
        lost = dict.fromkeys(known.pending, f"not timed: {message}"[:500])
        return _store(s, found, known, replace(known, pending=(), skipped={**known.skipped, **lost}))
    found.state, found.settled_at = "failed", now(s)
    for run in _going(s, RunRow.baseline_id == found.id):
        end_run(s, run, RunStatus.FAILED, EndReason.INTERNAL_ERROR, message)
    return []


def give_up_admitting(s: Session, row: JobRow, message: str) -> list[Nudge]:
    """Handle an admit or baseline Job that failed for good."""
    admission = s.get(AdmissionRow, row.subject_id)
    if admission is not None:
        lock_problem(s, admission.problem_id)
        return abandon_admission(s, admission, message)
    baseline = s.get_one(BaselineRow, row.subject_id)
    lock_problem(s, baseline.problem_id)
    return abandon_baseline(s, baseline, message)
