"""Screening and compiling of a Candidate, by a judge that builds while others are timed."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.work.settle import settle_build
from db.views.rows import Job
from db.views.work import BuildWork
from evaluator.types import BuildReport
from workers.context import Context
from workers.handlers.base import Settle, ask_judge


def handle(context: Context, job: Job, work: BuildWork) -> Settle:
    """Build the Candidate."""
    answer = ask_judge(
        context,
        job,
        work.device_kind,
        "build",
        BuildReport,
        deadline_s=context.settings.build_deadline_s,
        problem=work.problem,
        candidate=work.candidate,
    )
    return partial(_settle, job=job, answer=answer)


def _settle(s: Session, *, job: Job, answer: BuildReport) -> list[Nudge]:
    return settle_build(s, job, answer)
