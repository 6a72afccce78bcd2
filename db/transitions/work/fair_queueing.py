"""Start-time fair queueing over projects, by the seconds that their Jobs take.

A project's `finish` is the service that it has had, in seconds over its weight; the least comes next. A claim charges
an estimate, and the Job's end replaces it by the real duration: waiting is never charged. An idle project's credit ends
with the queue's virtual time, the start of the newest service: a project cannot save up a burst.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache

from sqlalchemy import Select, String, bindparam, case, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.clock import now
from db.queues import CONTROL, PROPOSE, JobKind
from db.repositories.access.projects import month_of
from db.tables.core import BaselineRow, Project, RunRow
from db.tables.queue import JobRow, ShareRow
from db.transitions.access.projects import spent_in
from db.views.rows import Job
from evaluator.types import DeviceKind
from evolution.types import RunStatus

KEEP_S = 20.0
"""For this long after its Baselines are timed a device stays free for the first Candidate of another project's Run."""
KEEP_AGAIN_S = 180.0
"""No device stays free for a project again for so long: Runs that it starts one after the other would keep it idle."""
_UNCHARGED = (CONTROL, PROPOSE)  # these queues use no device time; dollars are reserved before they are spent
_FORGETS = 0.3


def projects_by_service(s: Session, queue: str) -> list[str]:
    """Return the projects with ready Jobs in a queue, least service first; ties go to the older Job.

    One index probe a project, for any number of ready Jobs.
    """
    return list(s.scalars(_by_service(queue not in _UNCHARGED), {"of_queue": queue, "month": month_of(now(s))}))


@cache
def _by_service(charged: bool) -> Select[tuple[str]]:
    """Return the query for the projects, made once: to make it takes longer than to run it."""
    queue = bindparam("of_queue", type_=String)
    oldest = (
        select(func.min(JobRow.id))
        .where(JobRow.queue == queue, JobRow.state == "ready", JobRow.project_id == Project.id)
        .correlate(Project)
        .scalar_subquery()
    )
    places = select(Project.id, func.coalesce(ShareRow.finish, 0.0).label("finish"), oldest.label("oldest"))
    places = places.outerjoin(ShareRow, (ShareRow.project_id == Project.id) & (ShareRow.queue == queue))
    if charged:
        places = places.where(Project.id.not_in(spent_in(bindparam("month", type_=String))))
    found = places.subquery()
    return select(found.c.id).where(found.c.oldest.is_not(None)).order_by(found.c.finish, found.c.oldest)


def charge_estimate(s: Session, job_id: str, queue: str, project_id: str) -> None:
    """Charge a project the estimate for a Job claimed just now. Locks its share: the last lock of a claim."""
    own = s.get(ShareRow, (queue, project_id), with_for_update=True, populate_existing=True)
    virtual = s.scalars(select(func.max(ShareRow.start)).where(ShareRow.queue == queue)).one() or 0.0
    start = max(virtual, own.finish if own is not None else 0.0)
    cost_s = own.cost_s if own is not None else _usual_s(s, queue)
    weight = s.scalars(select(Project.weight).where(Project.id == project_id)).one()
    insert = postgresql.insert if s.get_bind().dialect.name == "postgresql" else sqlite.insert
    values = {"start": start, "finish": start + cost_s / weight, "cost_s": cost_s}
    s.execute(
        insert(ShareRow)
        .values(queue=queue, project_id=project_id, **values)
        .on_conflict_do_update(index_elements=["queue", "project_id"], set_=values)
    )
    s.execute(
        update(JobRow).where(JobRow.id == job_id).values(charged_s=cost_s).execution_options(synchronize_session=False)
    )


def _usual_s(s: Session, queue: str) -> float:
    """Return the usual duration of this queue's Jobs, for a project that has not had one."""
    return s.scalars(select(func.avg(ShareRow.cost_s)).where(ShareRow.queue == queue)).one() or 1.0


def charge_actual(s: Session, job: Job) -> None:
    """Charge the real duration of an ended or returned Job. Call it last: it locks the project's share."""
    s.flush()
    row = s.get(JobRow, job.id, populate_existing=True)
    if row is None or row.charged_s is None or row.claimed_at is None or row.state == "claimed":
        return
    took_s = max(0.0, ((row.done_at or now(s)) - row.claimed_at).total_seconds())
    weight = select(Project.weight).where(Project.id == row.project_id).scalar_subquery()
    s.execute(
        update(ShareRow)
        .where(ShareRow.queue == row.queue, ShareRow.project_id == row.project_id)
        .values(
            finish=ShareRow.finish + (took_s - row.charged_s) / weight,
            cost_s=ShareRow.cost_s + _FORGETS * (took_s - ShareRow.cost_s),
        )
        .execution_options(synchronize_session=False)
    )
    row.charged_s = None


def must_stay_free(s: Session, queue: str, project_id: str, worker: str) -> bool:
    """Tell whether this worker should skip the ready Jobs of `project_id` for another project's first Candidate.

    Admission and Baselines of a Run wait for a device once. Its first Candidate, which can be judged as soon as
    Baselines are timed, would wait for a whole slot again. So one worker stays free for it, until it comes or KEEP_S
    have passed. Without a share in the queue, or soon after it was kept free before, none does.
    """
    moment = now(s)
    ready_at = case((BaselineRow.settled_at > RunRow.started_at, BaselineRow.settled_at), else_=RunRow.started_at)
    kinds = [kind for kind in DeviceKind if queue.endswith(kind.value)]
    judging = select(JobRow.id).where(
        JobRow.run_id == RunRow.id, JobRow.queue == queue, JobRow.kind != JobKind.BUILD, JobRow.state == "claimed"
    )
    beginner = s.execute(
        select(RunRow.project_id, ready_at.label("ready_at"))
        .join(BaselineRow, BaselineRow.id == RunRow.baseline_id)
        .join(ShareRow, (ShareRow.project_id == RunRow.project_id) & (ShareRow.queue == queue))
        .where(
            or_(
                ShareRow.kept_until.is_(None),
                ShareRow.kept_until > moment,
                ShareRow.kept_until <= moment - timedelta(seconds=KEEP_AGAIN_S),
            ),
            BaselineRow.state == "timed",
            RunRow.status == RunStatus.RUNNING,
            RunRow.device_kind.in_(kinds),
            RunRow.project_id != project_id,
            ready_at > moment - timedelta(seconds=KEEP_S),
            RunRow.spent_device_s == 0.0,
            ~judging.exists(),
        )
        .order_by(ready_at)
        .limit(1)
    ).one_or_none()
    if beginner is None:
        return False
    share = s.get_one(ShareRow, (queue, beginner.project_id), with_for_update=True, populate_existing=True)
    if share.kept_until is not None and share.kept_until > moment:
        return share.kept_by == worker
    share.kept_by, share.kept_until = worker, beginner.ready_at + timedelta(seconds=KEEP_S)
    s.flush()
    return True
