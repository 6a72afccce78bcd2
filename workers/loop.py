"""The loop behind a nudge: claim, execute outside any transaction, settle in one, nudge after its commit."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

import stamina
import structlog
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from db.engine import read_session, write_session
from db.queues import JobKind, Nudge
from db.repositories.work import proposing
from db.repositories.work.jobs import payload
from db.transitions.work import devices
from db.transitions.work.fair_queueing import charge_actual
from db.transitions.work.jobs import claim
from db.transitions.work.settle import fail_job
from db.views.rows import Job
from db.views.work import WorkItem
from evaluator.schema import SchemaError, from_json
from evaluator.types import Device, Environment
from runtime.logs import get_logger
from runtime.queues import BUILDS, DEVICES, PROPOSE
from workers.context import Context
from workers.errors import StepFailed
from workers.handlers import HANDLERS, Settle
from workers.handlers.base import PaidSettle
from workers.lease import Lease

REGISTER_EVERY_S = 300.0
DESCRIBE_S = 120.0
MESSAGE_CHARACTERS = 2000

log = get_logger(__name__)


def work(context: Context, queue: str) -> int:
    """Do the Jobs of a queue, and of those that this worker serves with it, until none is left or the worker stops;
    return their number.

    A nudge that arrives twice, late, or without need does no harm: each Job is claimed once.
    """
    done, queues = 0, context.queues_with(queue)
    queue = queues[0]
    if queue in DEVICES:
        register_device(context, queue)
    elif queue in BUILDS:
        _start_build_judge(context, queue)
    while not context.stopping.is_set():
        with write_session(context.engine) as s:
            job = claim(s, queues, context.name, context.settings.lease_s)
        if job is None:
            if queue == PROPOSE and _prepare_proposals(context):
                continue  # Proposals may be waiting by now
            break
        if queue == PROPOSE or queue in BUILDS:
            context.nudge([queue])  # so that another thread or worker can take the next one meanwhile
        run_job(context, job)
        done += 1
    return done


def _prepare_proposals(context: Context) -> bool:
    """Prepare for a Problem that is being admitted; return true if that took time.

    A failure occurs again in its Proposals, which report it.
    """
    proposers = context.proposers  # a worker imports them when it starts, not in its first Proposal
    with read_session(context.engine) as s:
        upcoming = proposing.upcoming(s)
    try:
        return any(proposers.prepare(one) for one in upcoming)
    except StepFailed as failure:
        log.warning("proposals.not_prepared", error=str(failure))
        return False


def run_job(context: Context, job: Job) -> None:
    """Execute one claimed Job and settle it. A failed Job raises nothing; a lost lease drops the result."""
    ids = {"job_id": job.id, "run_id": job.run_id, "request_id": job.request_id}
    with ExitStack() as bound:
        bound.enter_context(structlog.contextvars.bound_contextvars(kind=job.kind, **ids))
        started = time.monotonic()
        lease = Lease(
            context.engine,
            job,
            lease_s=context.settings.lease_s,
            every_s=context.settings.heartbeat_s,
            on_lost=context.interrupt,
        )
        with lease:
            settle = _execute(context, job, bound)
        if settle is None or lease.lost.is_set():
            log.info("job.dropped", lost=lease.lost.is_set(), stopping=context.stopping.is_set())
            return
        # After the last renewal: one that came after the settlement would take the lease for lost, and kill the judge.
        nudges = _settle(context, job, settle)
        log.info("job.settled", subject_id=job.subject_id, attempt=job.attempt, s=round(time.monotonic() - started, 3))
        context.nudge(nudges)


def _execute(context: Context, job: Job, bound: ExitStack) -> Settle | None:
    """Execute a Job; return its settlement, or None if it is no longer ours or this worker stops.

    The Job's subject goes into every line of the log until `bound` ends.
    """
    kind = JobKind(job.kind)
    try:
        with read_session(context.engine) as s:
            item = payload(s, job)
        if item is None and kind is not JobKind.ADVANCE:
            return None
        bound.enter_context(structlog.contextvars.bound_contextvars(**_subject(item)))
        return HANDLERS[kind](context, job, item)
    except StepFailed as failure:
        if context.stopping.is_set():
            return None
        log.warning("job.failed", error=str(failure), attempt=job.attempt)
        return _failed(job, str(failure))
    except Exception as error:
        log.exception("job.broke")
        return _failed(job, f"{type(error).__name__}: {error}")


def _subject(item: WorkItem | None) -> dict[str, str]:
    """Return the ids of a Job's Candidate, Proposal and Evaluation, as far as it has them."""
    names = ("candidate_id", "proposal_id", "evaluation_id")
    return {name: getattr(item, name) for name in names if hasattr(item, name)}


def _settle(context: Context, job: Job, settle: Settle) -> list[Nudge]:
    try:
        return _write(context, _with_accounting(job, settle))
    except Exception as error:
        log.exception("job.not_settled")
        message = f"{type(error).__name__}: {error}"[:MESSAGE_CHARACTERS]
        instead = settle.bill_alone(message) if isinstance(settle, PaidSettle) else _failed(job, message)
        return _write(context, _with_accounting(job, instead))


def _with_accounting(job: Job, settle: Settle) -> Settle:
    """Return a settlement that also charges the Job's time to its project."""

    def both(s: Session) -> list[Nudge]:
        nudges = settle(s)
        charge_actual(s, job)
        return nudges

    return both


def _failed(job: Job, message: str) -> Settle:
    def settle(s: Session) -> list[Nudge]:
        return fail_job(s, job, message[:MESSAGE_CHARACTERS], ours=True)

    return settle


def _write(context: Context, settle: Settle) -> list[Nudge]:
    """Settle in one transaction; retry if the database is busy or unreachable for a moment."""
    for attempt in stamina.retry_context(on=OperationalError, attempts=4, timeout=30.0, wait_initial=0.2):
        with attempt, write_session(context.engine) as s:
            return settle(s)
    raise AssertionError("unreachable: the last attempt raises")


def _start_build_judge(context: Context, queue: str) -> None:
    """Start the judge of a build queue once, so that the first Candidate need not wait for it."""
    if queue in context.registered:
        return
    context.registered[queue] = float("inf")
    try:
        context.judge(BUILDS[queue]).request("ping", deadline_s=DESCRIBE_S)
    except StepFailed as error:
        log.error("judge.not_started", queue=queue, error=str(error))


def register_device(context: Context, queue: str) -> None:
    """Register this worker's device in the database, at its start and every few minutes.

    A judge that fails to describe its device is logged. Its Jobs then fail by themselves, with their attempts counted.
    """
    if time.monotonic() < context.registered.get(queue, float("-inf")):
        return
    try:
        said = context.judge(DEVICES[queue]).request("describe", deadline_s=DESCRIBE_S)
        device, environment = from_json(Device, said["device"]), from_json(Environment, said["environment"])
        isolation = tuple(str(item) for item in said["isolation"])
    except (StepFailed, SchemaError, KeyError, TypeError) as error:
        log.error("device.not_described", queue=queue, error=str(error))
        return
    _write(context, partial(_register, device=device, environment=environment, isolation=isolation))
    context.registered[queue] = time.monotonic() + REGISTER_EVERY_S
    context.device_uuid = device.uuid


def _register(s: Session, *, device: Device, environment: Environment, isolation: tuple[str, ...]) -> list[Nudge]:
    devices.register(s, device, environment, isolation)
    return []
