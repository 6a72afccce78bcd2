"""The event hub without a database: replay, live, gaps, slow followers, ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from db.engine import read_session
from db.repositories import events, runs
from db.views.rows import EventView
from service.streams.follow import follow
from service.streams.frames import encode
from service.streams.hub import PAGE, QUEUE, EventHub, Feed
from tests.db.world import World, from_list

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

    def extend(self) -> None:
        self._append("run.extended")

    def _append(self, kind: str) -> None:
        seq = len(self.events) + 1
        self.events.append(EventView(run_id=RUN, seq=seq, kind=kind, created_at="2026-11-21T08:00:00Z"))

    def read(self, tails: Mapping[str, int]) -> Sequence[EventView]:
        self.reads += 1
        if self.broken:
            raise RuntimeError("the database is away")
        after = tails.get(RUN)
        return [] if after is None else self.events[after : after + PAGE]


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


@pytest.mark.parametrize("number", [3, PAGE - 1, PAGE - 2])
def test_a_run_that_was_extended_is_followed_to_its_last_end(number: int) -> None:
    table = Table(number)
    table.add(0, end=True)
    table.extend()
    table.add(4, end=True)
    table.add(2)  # of work that was in flight
    assert ids(running(table, collect)) == list(range(1, number + 10))


def test_what_comes_after_the_end_of_a_run_is_sent_and_the_stream_ends() -> None:
    table = Table(3)
    table.add(0, end=True)
    table.add(2)

    async def work(hub: EventHub) -> list[bytes]:
        return [one async for one in follow(hub, RUN, 4, ended=True, keep_alive_s=5, lifetime_s=60)]

    assert ids(running(table, work)) == [5, 6]


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
    async def work() -> None:
        feed = Feed()
        for one in Table(QUEUE + 5).events:
            feed.offer(encode(one))
        assert feed.lagging
        assert await feed.take(10) == []  # at once: it is to read the table
        feed.catch_up()
        assert await feed.take(0.001) == []
        feed.offer(encode(Table(1).events[0]))
        assert [frame.seq for frame in await feed.take(10)] == [1]

    asyncio.run(work())


def test_one_look_at_the_table_serves_every_run(engine: Engine) -> None:
    """Two statements a look, one where nothing is new; what is new comes by run and in order."""
    world = World(engine, propose=from_list("speed=1.5", "speed=1.2"))
    ids = [world.start().id for _ in range(3)]
    world.drain()
    with read_session(engine) as s, counting(engine) as statements:
        found = events.since(s, dict.fromkeys(ids, 2), 1000)
        assert len(statements) == 2
        for id in ids:
            assert [e.seq for e in found if e.run_id == id] == list(range(3, runs.get(s, id).last_seq + 1))
        assert [e.run_id for e in found] == sorted(e.run_id for e in found)
        assert [e.seq for e in events.since(s, {ids[0]: 4}, 2)] == [5, 6]
        last = {id: runs.get(s, id).last_seq for id in ids}
        statements.clear()
        assert events.since(s, {**last, "run_unknown": 0}, 10) == []
        assert len(statements) == 1
        many = {f"run_{number}": 0 for number in range(2000)} | {ids[1]: last[ids[1]] - 1}
        assert [e.kind for e in events.since(s, many, 10)] == ["run.ended"]


@contextmanager
def counting(engine: Engine) -> Iterator[list[str]]:
    """The statements that are sent within the block."""
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement != "BEGIN":
            sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)
