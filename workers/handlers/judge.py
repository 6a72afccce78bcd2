"""Judgement of a Candidate against the fastest Baseline."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.work.settle import settle_judge
from db.views.rows import Job
from db.views.work import JudgeWork
from evaluator.types import Evaluation
from workers.context import Context
from workers.handlers.base import Settle, ask_judge


def handle(context: Context, job: Job, work: JudgeWork) -> Settle:
    """Judge the Candidate on this worker's device."""
    answer = ask_judge(
        context,
        job,
        work.device_kind,
        "judge",
        Evaluation,
        deadline_s=context.settings.judge_deadline_s,
        problem=work.problem,
        candidate=work.candidate,
        baseline=work.baseline,
        quick=work.quick,
        best=work.best,
    )
    return partial(_settle, job=job, answer=answer)


def _settle(s: Session, *, job: Job, answer: Evaluation) -> list[Nudge]:
    return settle_judge(s, job, answer)
