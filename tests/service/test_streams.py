"""The event hub without a database: replay, live, gaps, slow followers, ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.views import EventView
from service.streams.follow import follow
from service.streams.hub import PAGE, QUEUE, EventHub, Feed

RUN = "run_1"


class Table:
    """An event table: a list that grows."""

    def __init__(self, number: int = 0) -> None:
        self.events: list[EventView] = []
        self.reads = 0
        self.broken = False
        self.add(number)

    def add(self, number: int, *, end: bool = False) -> None:
        for _ in range(number):
            self._append("candidate.created")
        if end:
            self._append("run.ended")

    def _append(self, kind: str) -> None:
        seq = len(self.events) + 1
        self.events.append(EventView(run_id=RUN, seq=seq, kind=kind, created_at="2026-11-21T08:00:00Z"))

    def read(self, run_id: str, after: int) -> Sequence[EventView]:
        self.reads += 1
        if self.broken:
            raise RuntimeError("the database is away")
        return self.events[after : after + PAGE]


def ids(chunks: Sequence[bytes]) -> list[int]:
    """The ids of a stream, in the order in which they were sent."""
    lines = b"".join(chunks).decode().splitlines()
    return [int(line.removeprefix("id: ")) for line in lines if line.startswith("id: ")]


def running(table: Table, work: Callable[[EventHub], Coroutine[Any, Any, Any]]) -> Any:
    """Run `work` with a hub that polls fast."""

    async def main() -> Any:
        hub = EventHub(table.read, poll_s=0.005)
        hub.start()
        try:
            return await asyncio.wait_for(work(hub), 20)
        finally:
            await hub.stop()

    return asyncio.run(main())


async def collect(hub: EventHub, after: int = 0, *, keep_alive_s: float = 5, lifetime_s: float = 15) -> list[bytes]:
    return [chunk async for chunk in follow(hub, RUN, after, keep_alive_s=keep_alive_s, lifetime_s=lifetime_s)]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("number", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
def test_everything_stored_is_replayed_in_order_to_the_end(number: int) -> None:
    table = Table(number)
    table.add(0, end=True)
    assert ids(running(table, collect)) == list(range(1, number + 2))


def test_a_stream_resumes_after_the_last_event_id() -> None:
    table = Table(10)
    table.add(0, end=True)
    assert ids(running(table, lambda hub: collect(hub, after=7))) == [8, 9, 10, 11]


def test_live_events_arrive_as_they_are_written() -> None:
    table = Table(2)

    async def work(hub: EventHub) -> list[bytes]:
        task = asyncio.create_task(collect(hub))
        await until(lambda: hub.followers == 1)
        for _ in range(5):
            table.add(3)
            reads = table.reads
            await until(lambda seen=reads: table.reads > seen)  # type: ignore[misc]
        table.add(0, end=True)
        return await task

    assert ids(running(table, work)) == list(range(1, 19))


def test_a_burst_larger_than_the_queue_loses_nothing() -> None:
    table = Table(1)

    async def work(hub: EventHub) -> list[bytes]:
        stream = follow(hub, RUN, 0, keep_alive_s=5, lifetime_s=15)
        chunks = [await anext(stream), await anext(stream)]
        table.add(4 * QUEUE, end=True)
        await until(lambda: any(feed.lagging for feed in hub._feeds[RUN]) or hub._tails[RUN] == 4 * QUEUE + 2)
        chunks += [chunk async for chunk in stream]
        return chunks

    assert ids(running(table, work)) == list(range(1, 4 * QUEUE + 3))


def test_many_followers_share_one_reader_and_each_sequence_is_complete() -> None:
    table = Table(5)

    async def work(hub: EventHub) -> list[list[bytes]]:
        tasks = [asyncio.create_task(collect(hub, after=number % 5)) for number in range(50)]
        await until(lambda: hub.followers == 50)
        table.add(20, end=True)
        return await asyncio.gather(*tasks)

    for number, chunks in enumerate(running(table, work)):
        assert ids(chunks) == list(range(number % 5 + 1, 27))


def test_quiet_streams_are_kept_alive_and_end_at_their_lifetime() -> None:
    chunks = running(Table(1), lambda hub: collect(hub, keep_alive_s=0.02, lifetime_s=0.2))
    assert ids(chunks) == [1]
    assert 2 <= chunks.count(b": ping\n\n") <= 10


def test_closing_the_hub_ends_every_stream() -> None:
    table = Table(3)

    async def work(hub: EventHub) -> list[list[bytes]]:
        tasks = [asyncio.create_task(collect(hub)) for _ in range(3)]
        await until(lambda: hub.followers == 3)
        hub.close()
        ended = await asyncio.gather(*tasks)
        assert hub.followers == 0
        assert ids(await collect(hub)) == []  # a new one ends at once, and the client comes back elsewhere
        return ended

    for chunks in running(table, work):
        assert ids(chunks) in ([], [1, 2, 3])


def test_the_tailer_survives_a_database_that_is_away() -> None:
    table = Table(1)

    async def work(hub: EventHub) -> list[bytes]:
        task = asyncio.create_task(collect(hub))
        await until(lambda: hub.followers == 1 and table.reads > 2)
        table.broken = True
        reads = table.reads
        await until(lambda: table.reads > reads + 1)
        table.broken = False
        table.add(2, end=True)
        return await task

    assert ids(running(table, work)) == [1, 2, 3, 4]


def test_nobody_following_means_nobody_reading() -> None:
    table = Table(3)

    async def work(hub: EventHub) -> int:
        table.add(0, end=True)
        await collect(hub)
        reads = table.reads
        await asyncio.sleep(0.05)
        return table.reads - reads

    assert running(table, work) <= 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 30))
def test_every_sequence_is_complete_whatever_the_bursts(bursts: list[int], after: int) -> None:
    table = Table(30)

    async def work(hub: EventHub) -> list[bytes]:
        task = asyncio.create_task(collect(hub, after=after))
        for burst in bursts:
            table.add(burst)
            await asyncio.sleep(0)
        table.add(0, end=True)
        return await task

    assert ids(running(table, work)) == list(range(after + 1, 32 + sum(bursts)))


def test_a_full_queue_wakes_its_follower() -> None:
    feed = Feed()
    for event in Table(QUEUE + 5).events:
        feed.offer(event)
    assert feed.lagging
    assert feed.queue.qsize() == QUEUE
