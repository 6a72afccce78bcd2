"""The events of one run as a stream of server-sent events: replay, then live, then the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from service.streams.frames import Frame, encode
from service.streams.hub import PAGE, EventHub, Feed

RETRY_MS = 1000
LAST_KIND = "run.ended"


async def follow(
    hub: EventHub,
    run_id: str,
    after: int,
    *,
    known: int = 0,
    keep_alive_s: float,
    lifetime_s: float,
    owner: str | None = None,
) -> AsyncIterator[bytes]:
    """Yield every event of a run after `after`, in order and without a gap, until it ended.

    A stream lives `lifetime_s` at most: the client reconnects with Last-Event-ID and misses nothing. It ends earlier
    where `owner`, its key or session, is revoked. `known` is the run's newest seq, if known.
    """
    yield format_sse_event(retry=RETRY_MS, comment="events of " + run_id)
    ends_at = asyncio.get_running_loop().time() + lifetime_s
    cursor = after
    with hub.subscribe(run_id, max(after, known), owner=owner) as feed:
        while not feed.closed:
            feed.catch_up()
            async for frames in _stored(hub, run_id, cursor):
                chunk, cursor, ended = _join(frames, cursor)
                yield chunk
                if ended:
                    return
            async for frames in _live(feed, keep_alive_s, ends_at):
                fresh = [frame for frame in frames if frame.seq > cursor]
                if not frames:
                    yield KEEPALIVE_COMMENT
                if not fresh:
                    continue
                if fresh[0].seq != cursor + 1:
                    break  # something is missing: read the table
                chunk, cursor, ended = _join(fresh, cursor)
                yield chunk
                if ended:
                    return
            if asyncio.get_running_loop().time() >= ends_at:
                return


def _join(frames: Iterable[Frame], cursor: int) -> tuple[bytes, int, bool]:
    """Join frames to one chunk, up to the run's end; return it with its last seq, and whether that was the end."""
    parts: list[bytes] = []
    for frame in frames:
        parts.append(frame.data)
        cursor = frame.seq
        if frame.kind == LAST_KIND:
            return b"".join(parts), cursor, True
    return b"".join(parts), cursor, False


async def _stored(hub: EventHub, run_id: str, after: int) -> AsyncIterator[list[Frame]]:
    while True:
        page = [encode(event) for event in await hub.read({run_id: after})]
        if page:
            yield page
            after = page[-1].seq
        if len(page) < PAGE:
            return


async def _live(feed: Feed, keep_alive_s: float, ends_at: float) -> AsyncIterator[list[Frame]]:
    """Yield the tailer's frames; nothing after a quiet `keep_alive_s`. End when the feed lags, closes, or in time."""
    loop = asyncio.get_running_loop()
    while not (feed.lagging or feed.closed):
        remaining = ends_at - loop.time()
        if remaining <= 0:
            return
        frames = await feed.take(min(keep_alive_s, remaining))
        if frames or (remaining > keep_alive_s and not (feed.lagging or feed.closed)):
            yield frames
