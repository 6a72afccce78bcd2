"""The events of one run as a stream of server-sent events: replay, then live, then the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from db.views import EventView
from evaluator.schema import to_json
from service.streams.hub import PAGE, EventHub, Feed

RETRY_MS = 1000
LAST_KIND = "run.ended"


def encode(event: EventView) -> bytes:
    """One event on the wire; its id is the run's `seq`, which Last-Event-ID hands back."""
    data = json.dumps(to_json(event), ensure_ascii=False, separators=(",", ":"))
    return format_sse_event(data_str=data, event=event.kind, id=str(event.seq))


async def follow(
    hub: EventHub, run_id: str, after: int, *, keep_alive_s: float, lifetime_s: float
) -> AsyncIterator[bytes]:
    """Everything that happened to a run after `after`, in order and without a gap, until it ended.

    A stream lives `lifetime_s` at most: the client comes back with Last-Event-ID and misses nothing.
    """
    yield format_sse_event(retry=RETRY_MS, comment="events of " + run_id)
    ends_at = asyncio.get_running_loop().time() + lifetime_s
    cursor = after
    with hub.subscribe(run_id, after) as feed:
        while not feed.closed:
            feed.catch_up()
            async for event in _stored(hub, run_id, cursor):
                yield encode(event)
                cursor = event.seq
                if event.kind == LAST_KIND:
                    return
            async for live in _live(feed, keep_alive_s, ends_at):
                if live is None:
                    yield KEEPALIVE_COMMENT
                    continue
                if live.seq <= cursor:
                    continue
                if live.seq != cursor + 1:
                    break  # something is missing: the table has it
                yield encode(live)
                cursor = live.seq
                if live.kind == LAST_KIND:
                    return
            if asyncio.get_running_loop().time() >= ends_at:
                return


async def _stored(hub: EventHub, run_id: str, after: int) -> AsyncIterator[EventView]:
    while True:
        page = await hub.read(run_id, after)
        for event in page:
            yield event
            after = event.seq
        if len(page) < PAGE:
            return


async def _live(feed: Feed, keep_alive_s: float, ends_at: float) -> AsyncIterator[EventView | None]:
    """What the tailer brings; None after every quiet `keep_alive_s`. Ends when the feed lags, closes, or time is up."""
    loop = asyncio.get_running_loop()
    while not (feed.lagging or feed.closed):
        remaining = ends_at - loop.time()
        if remaining <= 0:
            return
        try:
            event = await asyncio.wait_for(feed.queue.get(), min(keep_alive_s, remaining))
        except TimeoutError:
            if remaining > keep_alive_s:
                yield None
            continue
        if event is not None:
            yield event
