"""`Client`: the whole API, typed, for synchronous programs.

with Client("http://127.0.0.1:8000") as client:
    run = client.create_run(problem_id="prob_...", budget={"candidates": 40})
    for event in client.follow(run.id):
        print(event.kind)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from warpwright.api.calling import error_of, headers_for
from warpwright.api.changing import Changing
from warpwright.api.decoding import Page
from warpwright.api.following import TIMEOUT, Backoff, event_of, stream_headers
from warpwright.api.reading import Reading
from warpwright.api.searching import Event
from warpwright.errors import ServiceFailed, Unreachable

T = TypeVar("T")


class Client(Reading, Changing):
    """Calls one service. `api_key`, else $WARPWRIGHT_API_KEY, is sent as a bearer token if there is one.

    Every method raises Refused (4xx), ServiceFailed (5xx, unreadable answers) or Unreachable.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.http = httpx2.Client(
            base_url=self.url,
            headers=headers_for(api_key),
            timeout=httpx2.Timeout(timeout_s),
            trust_env=False,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def each(self, operation: Callable[..., Page[T]], /, *args: Any, **options: Any) -> Iterator[T]:
        """Yield every item of a list, page by page: `client.each(client.list_candidates, run_id, order="fastest")`."""
        while True:
            page = operation(*args, **options)
            yield from page.items
            if page.next_cursor is None:
                return
            options["cursor"] = page.next_cursor

    def events(self, run_id: str, *, after: int = 0) -> Iterator[Event]:
        """Yield the events of a Run so far, without waiting for more."""
        while True:
            page = self.list_events(run_id, after=after)
            yield from page.items
            if page.next_cursor is None:
                return
            after = int(page.next_cursor)

    def follow(
        self, run_id: str, *, after: int = 0, give_up_s: float = 60.0, check: Callable[[], None] = lambda: None
    ) -> Iterator[Event]:
        """Yield every event after `after` once, in order, until the Run has ended.

        A broken stream is resumed where it stopped (Last-Event-ID), after a growing pause. Raises Unreachable after
        `give_up_s` without a connection. `check` is called before each attempt and may raise, for example because the
        service was stopped.
        """
        backoff = Backoff(self.url, give_up_s)
        while True:
            check()
            broken: Exception | None = None
            try:
                for event in self._stream(run_id, after):
                    backoff.reset()
                    if event.seq <= after:
                        continue
                    after = event.seq
                    yield event
                if self.get_run(run_id).end_reason is not None:  # else the service is ending, or the Run was extended
                    for event in self.events(run_id, after=after):
                        after = event.seq
                        yield event
                    return
            except (Unreachable, ServiceFailed) as error:
                broken = error
            time.sleep(backoff.pause(broken))

    def _stream(self, run_id: str, after: int) -> Iterator[Event]:
        path = f"/api/v1/runs/{run_id}/events"
        try:
            with self.http.stream("GET", path, headers=stream_headers(after), timeout=TIMEOUT) as response:
                if response.is_error:
                    response.read()
                    raise error_of(response)
                if response.status_code == 204:
                    return
                for sent in httpx2.EventSource(response):
                    event = event_of(sent, run_id)
                    if event is not None:
                        yield event
        except httpx2.HTTPError as error:
            raise Unreachable(f"{self.url}: {error or type(error).__name__}") from error
