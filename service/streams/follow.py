"""The events of one run as a stream of server-sent events: replay, then live, then the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from service.streams.frames import Frame, encode
from service.streams.hub import PAGE, EventHub, Feed

RETRY_MS = 1000
ENDED, GOES_ON = "run.ended", "run.extended"
"""A Run that ended may be extended: the last of these events tells."""


async def follow(
    hub: EventHub,
    run_id: str,
    after: int,
    *,
    known: int = 0,
    ended: bool = False,
    keep_alive_s: float,
    lifetime_s: float,
    owner: str | None = None,
) -> AsyncIterator[bytes]:
    """Yield every event of a run after `after`, in order and without a gap, until it has ended.

    A stream lives `lifetime_s` at most: the client reconnects with Last-Event-ID and misses nothing. It ends earlier
    where `owner`, its key or session, is revoked. `known` is the run's newest seq, if known, and `ended` whether the
    run had ended by then.
    """
    yield format_sse_event(retry=RETRY_MS, comment="events of " + run_id)
    ends_at = asyncio.get_running_loop().time() + lifetime_s
    cursor = after
    with hub.subscribe(run_id, max(after, known), owner=owner) as feed:
        while not feed.closed:
            feed.catch_up()
            async for frames in _stored(hub, run_id, cursor):
                cursor, ended = frames[-1].seq, _has_ended(frames, ended)
                yield _join(frames)
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
                cursor, ended = fresh[-1].seq, _has_ended(fresh, ended)
                yield _join(fresh)
                if ended:
                    return
            if asyncio.get_running_loop().time() >= ends_at:
                return


def _join(frames: Iterable[Frame]) -> bytes:
    return b"".join(frame.data for frame in frames)


def _has_ended(frames: Iterable[Frame], before: bool) -> bool:
    """Tell whether the run has ended after these events, given whether it had before."""
    for frame in frames:
        before = frame.kind == ENDED or (before and frame.kind != GOES_ON)
    return before


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
