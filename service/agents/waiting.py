"""Waiting for a run without a thread or a connection of the database, with progress for the agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mcp.server.mcpserver import Context as ToolContext
from mcp.server.mcpserver.exceptions import ToolError

from service.agents.words import line_of
from service.streams.frames import Frame
from service.streams.hub import EventHub

T = TypeVar("T")
LOOK_S = 5.0
"""Longest time without a look at the state itself."""
LEAST_S = 1.0
"""Shortest time between two looks: they count against the caller's quota."""
PROGRESS_ONLY = frozenset({"run.progress"})
"""Events that change nothing that a tool returns."""


async def wait_for(
    hub: EventHub,
    run_id: str,
    read: Callable[[], Awaitable[T]],
    first: T,
    done: Callable[[T], bool],
    *,
    known: int,
    owner: str | None,
    wait_s: float,
    context: ToolContext,
) -> T:
    """Return what `read` reads, once it is done or `wait_s` have passed. Each event of the run is told as progress.

    `first` was read before. The last value stays where a look fails.
    """
    clock = asyncio.get_running_loop().time
    looked, value, due = clock(), first, True  # an event may have come before the subscription
    end = looked + wait_s
    with hub.subscribe(run_id, known, owner=owner) as feed:
        while not done(value) and not feed.closed:
            if due and clock() >= looked + LEAST_S:
                with contextlib.suppress(ToolError):
                    value = await read()
                looked, due = clock(), False
                continue
            if (left := end - clock()) <= 0:
                break
            frames = await feed.take(min(left, looked + LEAST_S - clock() if due else LOOK_S))
            for frame in frames:
                await _tell(context, frame)
            if feed.lagging:
                feed.catch_up()
            due = due or not frames or any(frame.kind not in PROGRESS_ONLY for frame in frames)
    return value


async def _tell(context: ToolContext, frame: Frame) -> None:
    event = json.loads(frame.data.partition(b"data: ")[2].partition(b"\n")[0])
    line = line_of(frame.kind, event["data"])
    if line:
        await context.report_progress(frame.seq, None, line)
