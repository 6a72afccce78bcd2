"""The type of a handler's result, and requests to a judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from db.queues import Nudge
from db.views.rows import Job
from evaluator.schema import SchemaError, from_json, to_json
from evaluator.types import DeviceKind
from workers.context import Context
from workers.errors import JudgeFault
from workers.handlers.progress import ProgressNotes

Settle = Callable[[Session], list[Nudge]]
"""Writes the outcome inside the caller's transaction; returns the nudges to send after the commit."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PaidSettle:
    """A Settle of paid work: `bill_alone(reason)` settles the cost where the result itself cannot be stored."""

    whole: Settle
    bill_alone: Callable[[str], Settle]

    def __call__(self, s: Session) -> list[Nudge]:
        return self.whole(s)


def ask_judge(
    context: Context, job: Job, kind: DeviceKind, op: str, answer: type[T], *, deadline_s: float, **payload: object
) -> T:
    """Send a request to the judge of a device kind and return its answer as `answer`. Raises JudgeFault.

    What the judge tells meanwhile becomes events of the Job's Runs.
    """
    values: dict[str, Any] = {key: to_json(value) for key, value in payload.items()}
    result = context.judge(kind).request(op, deadline_s=deadline_s, on_note=ProgressNotes(context, job), **values)
    try:
        return from_json(answer, result)
    except SchemaError as error:
        raise JudgeFault(f"{op}: the judge's answer is invalid: {error}") from error
