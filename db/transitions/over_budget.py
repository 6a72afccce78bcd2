"""The last check of a Run's budget: waiting work is dropped, not begun, once it is used up."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.clock import now
from db.queues import JobKind
from db.repositories import runs
from db.tables.core import EvaluationRow, RunRow
from db.tables.queue import JobRow
from db.transitions.work.enqueue import finish_job
from evaluator.schema import from_json
from evolution.types import Budget

_DEVICE = frozenset({JobKind.BUILD, JobKind.JUDGE, JobKind.CONFIRM})


def exhausted_limit(s: Session, run_id: str | None, kind: str) -> str | None:
    """Return the limit that forbids a Job of this kind, or None. Model calls are limited by `reserve`.

    A confirmation is begun whatever the time: the search orders one after its time only where it is owed.
    """
    if run_id is None or kind not in _DEVICE:
        return None
    run = s.get_one(RunRow, run_id, populate_existing=True)
    used = from_json(Budget, run.budget).used_up(runs.spend(run, now(s)))
    limits = ("device_s",) if kind == JobKind.CONFIRM else ("wall_s", "device_s")
    return next((name for name in limits if name in used), None)


def drop_unstarted(s: Session, job_id: str, limit: str) -> None:
    """Close a Job that was claimed just now, and its Evaluation.

    The Run is not locked, since one claim may do this for several Runs. Its other work in flight, or the sweeper,
    makes it look again.
    """
    row = s.get_one(JobRow, job_id, populate_existing=True)
    words = f"not begun: the run's budget of {limit} was used up"
    finish_job(s, row)
    row.state, row.error = "dead", words
    found = s.get_one(EvaluationRow, row.subject_id)
    if found.state in ("building", "judging"):
        found.state, found.settled_at, found.reason = "cancelled", now(s), words
    s.flush()
