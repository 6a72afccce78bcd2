"""Confirmation of a Candidate in new processes, against the Champion."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.transitions.work.settle import settle_confirm
from db.views.rows import Job
from db.views.work import ConfirmWork
from evaluator.types import Evaluation
from workers.context import Context
from workers.handlers.base import Settle, ask_judge


def handle(context: Context, job: Job, work: ConfirmWork) -> Settle:
    """Confirm the Candidate on this worker's device."""
    answer = ask_judge(
        context,
        job,
        work.device_kind,
        "confirm",
        Evaluation,
        deadline_s=context.settings.confirm_deadline_s,
        problem=work.problem,
        candidate=work.candidate,
        champion=work.champion,
        baseline=work.baseline,
    )
    return partial(_settle, job=job, answer=answer)


def _settle(s: Session, *, job: Job, answer: Evaluation) -> list[Nudge]:
    return settle_confirm(s, job, answer)
