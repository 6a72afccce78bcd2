"""Decoding and reconnection of a Run's event stream. No I/O here."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from warpwright.api.decoding import decode
from warpwright.api.searching import Event
from warpwright.errors import ServiceFailed, Unreachable

SILENCE_S = 40.0
"""A live stream is never silent for this long: the service sends comments more often."""
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 10.0
GIVE_UP_S = 60.0
"""Time limit for resuming a broken stream."""
TIMEOUT = httpx2.Timeout(10.0, read=SILENCE_S)


def stream_headers(after: int) -> dict[str, str]:
    """Return the headers that request the events after `after`."""
    return {"accept": "text/event-stream", **({"last-event-id": str(after)} if after else {})}


def event_of(sent: httpx2.ServerSentEvent, run_id: str) -> Event | None:
    """Return the event of a message, or None. The message may hold the whole event or its `data` alone."""
    if not sent.data:
        return None
    try:
        value = json.loads(sent.data)
    except ValueError as error:
        raise ServiceFailed(f"event {sent.id} is not JSON") from error
    if isinstance(value, dict) and "seq" in value and "kind" in value:
        return decode(Event, value)
    if not sent.id.isdigit():
        raise ServiceFailed(f"event {sent.event!r} has no sequence number")
    return Event(run_id=run_id, seq=int(sent.id), kind=sent.event, created_at="", data=value)


@dataclass(slots=True)
class Backoff:
    """Exponential backoff between connection attempts, with jitter, and an end after `give_up_s` by `clock`."""

    url: str
    give_up_s: float = GIVE_UP_S
    clock: Callable[[], float] = time.monotonic
    _failing_since: float | None = field(default=None, init=False)
    _pause_s: float = field(default=FIRST_PAUSE_S, init=False)

    def reset(self) -> None:
        """Start over, after an event arrived."""
        self._failing_since, self._pause_s = None, FIRST_PAUSE_S

    def pause(self, error: Exception | None) -> float:
        """Return the seconds to wait. `error` broke the stream; None if it ended by itself. Raises Unreachable."""
        if error is None:
            return FIRST_PAUSE_S
        moment = self.clock()
        if self._failing_since is None:
            self._failing_since = moment
        if moment - self._failing_since > self.give_up_s:
            raise Unreachable(f"{self.url}: the event stream could not be resumed ({error})") from error
        pause = self._pause_s * random.uniform(0.5, 1.0)
        self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2)
        return pause
