"""Events on the wire: encoded once for any number of followers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi.sse import format_sse_event

from db.views.rows import EventView
from evaluator.schema import to_json


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a run, ready to be sent. Its id on the wire is `seq`, which Last-Event-ID returns."""

    seq: int
    kind: str
    data: bytes


def encode(event: EventView) -> Frame:
    """Build the frame of an event."""
    data = json.dumps(to_json(event), ensure_ascii=False, separators=(",", ":"))
    return Frame(event.seq, event.kind, format_sse_event(data_str=data, event=event.kind, id=str(event.seq)))


def age_s(event: EventView) -> float:
    """Return seconds since an event was written."""
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(event.created_at)).total_seconds())
