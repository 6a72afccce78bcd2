"""`AsyncClient`: the whole API, typed, for asynchronous programs.

async with AsyncClient("http://127.0.0.1:8000") as client:
    run = await client.create_run(problem_id="prob_...", budget={"candidates": 40})
    async for event in client.follow(run.id):
        print(event.kind)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from warpwright.api.async_changing import AsyncChanging
from warpwright.api.async_reading import AsyncReading
from warpwright.api.calling import error_of, headers_for
from warpwright.api.decoding import Page
from warpwright.api.following import TIMEOUT, Backoff, event_of, stream_headers
from warpwright.api.searching import Event
from warpwright.errors import ServiceFailed, Unreachable

T = TypeVar("T")


class AsyncClient(AsyncReading, AsyncChanging):
    """Calls one service, as `Client` does. Await every method, and iterate lists and streams with `async for`."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.http = httpx2.AsyncClient(
            base_url=self.url,
            headers=headers_for(api_key),
            timeout=httpx2.Timeout(timeout_s),
            trust_env=False,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def each(
        self, operation: Callable[..., Awaitable[Page[T]]], /, *args: Any, **options: Any
    ) -> AsyncIterator[T]:
        """Yield every item of a list, page by page: `client.each(client.list_candidates, run_id, order="fastest")`."""
        while True:
            page = await operation(*args, **options)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            options["cursor"] = page.next_cursor

    async def events(self, run_id: str, *, after: int = 0) -> AsyncIterator[Event]:
        """Yield the events of a Run so far, without waiting for more."""
        while True:
            page = await self.list_events(run_id, after=after)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            after = int(page.next_cursor)

    async def follow(
        self, run_id: str, *, after: int = 0, give_up_s: float = 60.0, check: Callable[[], None] = lambda: None
    ) -> AsyncIterator[Event]:
        """Yield every event after `after` once, in order, until the Run has ended. See `Client.follow`."""
        backoff = Backoff(self.url, give_up_s)
        while True:
            check()
            broken: Exception | None = None
            try:
                async for event in self._stream(run_id, after):
                    backoff.reset()
                    if event.seq <= after:
                        continue
                    after = event.seq
                    yield event
                if (await self.get_run(run_id)).end_reason is not None:
                    async for event in self.events(run_id, after=after):
                        after = event.seq
                        yield event
                    return
            except (Unreachable, ServiceFailed) as error:
                broken = error
            await asyncio.sleep(backoff.pause(broken))

    async def _stream(self, run_id: str, after: int) -> AsyncIterator[Event]:
        path = f"/api/v1/runs/{run_id}/events"
        try:
            async with self.http.stream("GET", path, headers=stream_headers(after), timeout=TIMEOUT) as response:
                if response.is_error:
                    await response.aread()
                    raise error_of(response)
                if response.status_code == 204:
                    return
                async for sent in httpx2.EventSource(response):
                    event = event_of(sent, run_id)
                    if event is not None:
                        yield event
        except httpx2.HTTPError as error:
            raise Unreachable(f"{self.url}: {error or type(error).__name__}") from error
