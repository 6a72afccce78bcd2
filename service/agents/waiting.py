"""Waiting for a run without a thread or a connection of the database, with progress for the agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mcp.server.mcpserver import Context as ToolContext

from service.agents.words import line_of
from service.streams.frames import Frame
from service.streams.hub import EventHub

T = TypeVar("T")
LOOK_S = 5.0
"""Longest time without a look at the state itself."""
PROGRESS_ONLY = frozenset({"run.progress"})
"""Events that change nothing that a tool returns."""


async def wait_for(
    hub: EventHub,
    run_id: str,
    read: Callable[[], Awaitable[T]],
    done: Callable[[T], bool],
    *,
    known: int,
    owner: str | None,
    wait_s: float,
    context: ToolContext,
) -> T:
    """Return what `read` reads, once it is done or `wait_s` have passed. Each event of the run is told as progress."""
    end = asyncio.get_running_loop().time() + wait_s
    with hub.subscribe(run_id, known, owner=owner) as feed:
        value = await read()
        while not done(value) and not feed.closed:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            frames = await feed.take(min(left, LOOK_S))
            for frame in frames:
                await _tell(context, frame)
            if feed.lagging:
                feed.catch_up()
            if not frames or any(frame.kind not in PROGRESS_ONLY for frame in frames):
                value = await read()
    return value


async def _tell(context: ToolContext, frame: Frame) -> None:
    event = json.loads(frame.data.partition(b"data: ")[2].partition(b"\n")[0])
    line = line_of(frame.kind, event["data"])
    if line:
        await context.report_progress(frame.seq, None, line)
