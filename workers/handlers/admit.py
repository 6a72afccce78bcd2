"""Admission of a Problem: check its reference before other work."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.work.settle import settle_admission
from db.views.rows import Job
from db.views.work import AdmitWork
from evaluator.types import Admission
from workers.context import Context
from workers.handlers.base import Settle, ask_judge


def handle(context: Context, job: Job, work: AdmitWork) -> Settle:
    """Ask the judge to admit or refuse the Problem."""
    answer = ask_judge(
        context,
        job,
        work.device_kind,
        "admit",
        Admission,
        deadline_s=context.settings.admit_deadline_s,
        problem=work.problem,
    )
    return partial(_settle, job=job, answer=answer)


def _settle(s: Session, *, job: Job, answer: Admission) -> list[Nudge]:
    return settle_admission(s, job, answer)
