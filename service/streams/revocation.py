"""Ends the streams of revoked keys and ended sessions: one query every few seconds, for all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

import anyio.to_thread

from service.streams.hub import EventHub

log = logging.getLogger("warpwright.service")

# Credentials (ids of keys and sessions) -> the ended ones.
ReadEnded = Callable[[Collection[str]], set[str]]


async def end_revoked(hub: EventHub, read: ReadEnded, *, every_s: float) -> None:
    """Run until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        owners = hub.owners()
        if not owners:
            continue
        try:
            ended = await anyio.to_thread.run_sync(read, owners)
        except Exception:  # the database may be away for a moment; the next query comes soon
            log.exception("cannot look for revoked keys")
            continue
        for owner in ended:
            hub.close_owner(owner)
