"""One tailer per process: polls the event table for the runs that somebody follows and feeds bounded queues.

A follower holds no database connection and no thread. One that is too slow loses its queue, not its events: it is
marked as lagging and reads what it missed from the table, which is the only source of truth.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import anyio
import anyio.to_thread

from db.views import EventView

log = logging.getLogger("warpwright.service")

PAGE = 200
QUEUE = 256

# (run id, seq) -> the next events of that run in order, at most PAGE of them.
ReadEvents = Callable[[str, int], Sequence[EventView]]


class Feed:
    """A follower's bounded queue. `None` in it is a wake-up: look at `lagging` and `closed`."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[EventView | None] = asyncio.Queue(maxsize=QUEUE)
        self.lagging = False
        self.closed = False

    def offer(self, event: EventView) -> None:
        """Queue an event, or mark the follower as lagging where there is no room."""
        if self.lagging:
            return
        try:
            self.queue.put_nowait(event)
        except asyncio.QueueFull:
            self.lagging = True
            self._wake()

    def close(self) -> None:
        self.closed = True
        self._wake()

    def catch_up(self) -> None:
        """Forget what is queued: the follower reads on from the table."""
        self.lagging = False
        while not self.queue.empty():
            self.queue.get_nowait()

    def _wake(self) -> None:
        while True:
            try:
                self.queue.put_nowait(None)
            except asyncio.QueueFull:
                self.queue.get_nowait()
            else:
                return


class EventHub:
    """Follows the event table on behalf of everybody; `start` and `stop` belong to the application's lifespan."""

    def __init__(self, read: ReadEvents, *, poll_s: float = 0.2) -> None:
        self._read = read
        self._poll_s = poll_s
        self._feeds: dict[str, set[Feed]] = defaultdict(set)
        self._tails: dict[str, int] = {}
        self._followed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._limiter = anyio.CapacityLimiter(4)
        self.closed = False

    @property
    def followers(self) -> int:
        """How many streams are open."""
        return sum(len(feeds) for feeds in self._feeds.values())

    def start(self) -> None:
        """Begin to tail, in the running event loop; a hub may be started again after a stop."""
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

    async def read(self, run_id: str, after: int) -> Sequence[EventView]:
        """The next events of a run from the table, read in a thread (few at a time, so that routes keep theirs)."""
        return await anyio.to_thread.run_sync(self._read, run_id, after, limiter=self._limiter)

    @contextmanager
    def subscribe(self, run_id: str, after: int) -> Iterator[Feed]:
        """A queue of what happens to a run; what lies between `after` and now may be missing from it."""
        feed = Feed()
        if self.closed:
            feed.close()
        self._feeds[run_id].add(feed)
        self._tails.setdefault(run_id, after)
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
            for run_id in list(self._feeds):
                try:
                    await self._poll(run_id)
                except Exception:  # the database may be away for a moment; followers wait meanwhile
                    log.exception("cannot read events", extra={"run_id": run_id})
            await asyncio.sleep(self._poll_s)

    async def _poll(self, run_id: str) -> None:
        if (after := self._tails.get(run_id)) is None:
            return
        for event in await self.read(run_id, after):
            if run_id in self._tails:
                self._tails[run_id] = max(self._tails[run_id], event.seq)
            for feed in tuple(self._feeds.get(run_id, ())):
                feed.offer(event)
