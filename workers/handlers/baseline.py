"""Timing of a Problem's Baselines."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.work.settle import settle_baseline
from db.views.rows import Job
from db.views.work import BaselineWork
from evaluator.types import BaselineReport
from workers.context import Context
from workers.handlers.base import Settle, ask_judge


def handle(context: Context, job: Job, work: BaselineWork) -> Settle:
    """Time the Baselines that are ready, and later those that compiled since."""
    answer = ask_judge(
        context,
        job,
        work.device_kind,
        "baseline",
        BaselineReport,
        deadline_s=context.settings.baseline_deadline_s,
        problem=work.problem,
        baseline=work.baseline,
        patient=work.patient,
    )
    return partial(_settle, job=job, answer=answer)


def _settle(s: Session, *, job: Job, answer: BaselineReport) -> list[Nudge]:
    return settle_baseline(s, job, answer)
