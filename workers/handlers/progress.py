"""Tell the followers of a Run what its judge is doing: notes become events, at most one a second."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from db.engine import write_session
from db.transitions.work.progress import note_progress
from db.views.rows import Job
from runtime.logs import get_logger
from workers.context import Context

EVERY_S = 1.0

log = get_logger(__name__)


class ProgressNotes:
    """Writes the notes of one Job's judge as events of the Runs that wait for it.

    A note that comes too soon after another of its step is left out. A database that cannot take one costs the note,
    never the Job.
    """

    def __init__(self, context: Context, job: Job) -> None:
        self._context, self._job = context, job
        self._step: tuple[object, object] | None = None
        self._written = float("-inf")

    def __call__(self, note: Mapping[str, Any]) -> None:
        step, now = (note.get("stage"), note.get("step")), time.monotonic()
        text = words(note)
        if not text or (step == self._step and now < self._written + EVERY_S):
            return
        self._step, self._written = step, now
        try:
            with write_session(self._context.engine) as s:
                note_progress(s, self._job, {**note, "text": text})
        except SQLAlchemyError as error:
            log.warning("progress.not_written", error=str(error))


def words(note: Mapping[str, Any]) -> str:
    """Return a note as words for a person; "" for one that is not known."""
    match note:
        case {"stage": "wait"}:
            return "waiting for the device: another kernel is being timed"
        case {"stage": "baseline", "mode": mode, "workload": workload}:
            return f"baseline {mode} on {workload}"
        case {"stage": "confirm", "step": "check"}:
            return "confirming: correctness with new inputs"
        case {"stage": "confirm", "step": "time", "pair": pair, "pairs": pairs, "done": done, "total": total}:
            where = note.get("workload") or "a held-out workload"
            return f"confirming: processes {pair} of {pairs} on {where} ({done} of {total} done)"
        case _:
            return ""
