"""One tailer per process: one query of the event table for all followed runs feeds bounded queues.

A follower holds no database connection and no thread. One that is too slow loses its queue, not its events: it is
marked as lagging and reads the missed ones from the table, which is the only source of truth.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import anyio
import anyio.to_thread

from db.views.rows import EventView
from runtime.logs import get_logger
from service.streams.frames import Frame, age_s, encode

log = get_logger(__name__)

PAGE = 200
QUEUE = 256

# {run id: seq} -> the later events of these runs, by run and in order, at most PAGE of each.
ReadEvents = Callable[[Mapping[str, int]], Sequence[EventView]]


class Feed:
    """A follower's bounded queue. `owner` is its key or session, which may be revoked."""

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        self.lagging = False
        self.closed = False
        self._frames: list[Frame] = []
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        return len(self._frames)

    def offer(self, frame: Frame) -> None:
        """Queue a frame, or mark the follower as lagging where there is no room."""
        if self.lagging:
            return
        if len(self._frames) >= QUEUE:
            self.lagging = True
            self._frames.clear()
        else:
            self._frames.append(frame)
        self._woken.set()

    def close(self) -> None:
        self.closed = True
        self._woken.set()

    def catch_up(self) -> None:
        """Drop the queued frames: the follower reads on from the table."""
        self.lagging = False
        self._frames.clear()
        if not self.closed:
            self._woken.clear()

    async def take(self, timeout_s: float) -> list[Frame]:
        """Return all queued frames, as soon as there are some; none at the timeout, or when the follower must look."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return []
        self._woken.clear()
        taken, self._frames = self._frames, []
        return taken


class EventHub:
    """Follows the event table for all streams; `start` and `stop` belong to the application's lifespan."""

    def __init__(
        self, read: ReadEvents, *, poll_s: float = 0.2, observe_lag_s: Callable[[float], object] = lambda _: None
    ) -> None:
        """`observe_lag_s` gets each event's age when the tailer sees it."""
        self._read = read
        self._poll_s = poll_s
        self._observe_lag_s = observe_lag_s
        self._feeds: dict[str, set[Feed]] = defaultdict(set)
        self._tails: dict[str, int] = {}
        self._followed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._limiter = anyio.CapacityLimiter(4)
        self.closed = False

    @property
    def followers(self) -> int:
        """Return the number of open streams."""
        return sum(len(feeds) for feeds in self._feeds.values())

    @property
    def tailing(self) -> bool:
        """Tell whether the tailer is alive: without it no follower gets anything new."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start the tailer in the running event loop; a hub may be started again after a stop."""
        self.closed = False
        self._followed = asyncio.Event()
        self._task = asyncio.create_task(self._tail(), name="event-tailer")

    async def stop(self) -> None:
        """End every stream and the tailer."""
        self.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def close(self) -> None:
        """End every stream; new ones end at once."""
        self.closed = True
        for feeds in self._feeds.values():
            for feed in feeds:
                feed.close()

    def owners(self) -> set[str]:
        """Return the keys and sessions with an open stream."""
        return {feed.owner for feeds in self._feeds.values() for feed in feeds if feed.owner is not None}

    def close_owner(self, owner: str) -> None:
        """End every stream of a key or session."""
        for feeds in self._feeds.values():
            for feed in feeds:
                if feed.owner == owner:
                    feed.close()

    async def read(self, tails: Mapping[str, int]) -> Sequence[EventView]:
        """Return later events from the table, read in a thread (few at a time, so that routes keep theirs)."""
        return await anyio.to_thread.run_sync(self._read, tails, limiter=self._limiter)

    @contextmanager
    def subscribe(self, run_id: str, known: int, *, owner: str | None = None) -> Iterator[Feed]:
        """Return a queue of a run's events; those between `known` and now may be missing from it.

        `known` is a seq that the table has: nothing up to it needs to be read.
        """
        feed = Feed(owner)
        if self.closed:
            feed.close()
        self._feeds[run_id].add(feed)
        self._tails.setdefault(run_id, known)
        self._followed.set()
        try:
            yield feed
        finally:
            self._feeds[run_id].discard(feed)
            if not self._feeds[run_id]:
                del self._feeds[run_id], self._tails[run_id]
            if not self._feeds:
                self._followed.clear()

    async def _tail(self) -> None:
        while True:
            await self._followed.wait()
            try:
                self._deliver(await self.read(dict(self._tails)))
            except Exception:  # the database may be away for a moment; followers wait meanwhile
                log.exception("events.not_read")
            await asyncio.sleep(self._poll_s)

    def _deliver(self, events: Sequence[EventView]) -> None:
        for event in events:
            tail = self._tails.get(event.run_id)
            if tail is None or event.seq <= tail:
                continue  # it is no longer followed, or was followed anew meanwhile
            self._tails[event.run_id] = event.seq
            self._observe_lag_s(age_s(event))
            frame = encode(event)
            for feed in self._feeds[event.run_id]:
                feed.offer(frame)
