"""A synchronous client of the HTTP API: `with Client("http://127.0.0.1:8321") as client: client.runs()`."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx2

from warpwright.errors import Refused, ServiceFailed, Unreachable, WarpwrightError
from warpwright.models import Candidate, Champion, Event, JsonObject, Run

API = "/api/v1"
SILENCE_S = 40.0
"""A live event stream is never silent for so long: the service sends a comment more often than that."""
GIVE_UP_S = 60.0
"""How long a follower tries to get a broken stream back."""


class Client:
    """Talks to one service. `api_key` (else $WARPWRIGHT_API_KEY) is sent as a bearer token, where there is one.

    Every method raises Refused (4xx), ServiceFailed (5xx, unreadable replies) or Unreachable.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout_s: float = 30.0) -> None:
        headers = {"accept": "application/json", "user-agent": "warpwright"}
        key = api_key or os.environ.get("WARPWRIGHT_API_KEY")
        if key:
            headers["authorization"] = f"Bearer {key}"
        self.url = url.rstrip("/")
        self._http = httpx2.Client(
            base_url=self.url, headers=headers, timeout=httpx2.Timeout(timeout_s), trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # -- Problems and Runs ------------------------------------------------------------------------------------------

    def create_problem(self, name: str, source: str, **options: Any) -> JsonObject:
        """Store a Problem (idempotent on its content). `options`: domain, description."""
        return self._object(self._send("POST", f"{API}/problems", json={"name": name, "source": source, **options}))

    def problem(self, problem_id: str) -> JsonObject:
        return self._object(self._send("GET", f"{API}/problems/{problem_id}"))

    def create_run(
        self,
        *,
        problem_id: str,
        device: str,
        budget: Mapping[str, float],
        config: Mapping[str, Any],
        key: str | None = None,
    ) -> Run:
        """Start a Run; it is queued when this returns. `device` is "cpu" or "cuda".

        Called again with the same `key`, it returns the Run of the first call.
        """
        body = {"problem_id": problem_id, "device": device, "budget": dict(budget), "config": dict(config)}
        headers = {"idempotency-key": key} if key else {}
        return Run.read(self._object(self._send("POST", f"{API}/runs", json=body, headers=headers)))

    def run(self, run_id: str) -> Run:
        return Run.read(self._object(self._send("GET", f"{API}/runs/{run_id}")))

    def cancel(self, run_id: str) -> Run:
        return Run.read(self._object(self._send("POST", f"{API}/runs/{run_id}/cancel")))

    # -- Lists --------------------------------------------------------------------------------------------------------

    def runs(self) -> Iterator[Run]:
        return map(Run.read, self._pages(f"{API}/runs"))

    def leaderboard(self) -> Iterator[Champion]:
        return map(Champion.read, self._pages(f"{API}/leaderboard"))

    def candidates(self, run_id: str) -> Iterator[Candidate]:
        return map(Candidate.read, self._pages(f"{API}/runs/{run_id}/candidates"))

    def evaluations(self, candidate_id: str) -> Iterator[JsonObject]:
        return self._pages(f"{API}/candidates/{candidate_id}/evaluations")

    def candidate_source(self, candidate_id: str) -> str:
        return self._send("GET", f"{API}/candidates/{candidate_id}/source", headers={"accept": "*/*"}).text

    def _pages(self, path: str) -> Iterator[JsonObject]:
        cursor: str | None = None
        while True:
            page = self._object(self._send("GET", path, params={"cursor": cursor} if cursor else {}))
            yield from page.get("items", ())
            cursor = page.get("next_cursor")
            if not cursor:
                return

    # -- Events -------------------------------------------------------------------------------------------------------

    def events(self, run_id: str, *, after: int = 0) -> Iterator[Event]:
        """The events so far, without waiting for more."""
        while True:
            page = self._object(self._send("GET", f"{API}/runs/{run_id}/events", params={"after": after}))
            items = [Event.read(item) for item in page.get("items", ())]
            yield from items
            if not items or not page.get("next_cursor"):
                return
            after = items[-1].seq

    def follow(self, run_id: str, *, after: int = 0, check: Callable[[], None] = lambda: None) -> Iterator[Event]:
        """Every event after `after`, live, each once and in order, until the Run has ended.

        A broken stream is taken up where it stopped (Last-Event-ID). `check` is called before each attempt and may
        raise (the embedded stack says through it that it has gone down). Raises Unreachable after a minute without a
        stream.
        """
        failing_since: float | None = None
        while True:
            check()
            try:
                for event in self._stream(run_id, after):
                    failing_since = None
                    if event.seq <= after:
                        continue
                    after = event.seq
                    yield event
                    if event.kind == "run.ended":
                        return
            except (Unreachable, ServiceFailed) as error:
                failing_since = failing_since or time.monotonic()
                if time.monotonic() - failing_since > GIVE_UP_S:
                    raise Unreachable(f"{self.url}: the event stream could not be had back ({error})") from error
                time.sleep(0.5)
            if self.run(run_id).ended:
                yield from self.events(run_id, after=after)
                return

    def _stream(self, run_id: str, after: int) -> Iterator[Event]:
        headers = {"accept": "text/event-stream"}
        if after:
            headers["last-event-id"] = str(after)
        timeout = httpx2.Timeout(10.0, read=SILENCE_S)
        try:
            with self._http.stream("GET", f"{API}/runs/{run_id}/events", headers=headers, timeout=timeout) as response:
                if response.is_error:
                    response.read()
                    raise _error_of(response)
                for sent in httpx2.EventSource(response):
                    if sent.data:
                        yield _event_of(sent.event, sent.id, sent.data)
        except httpx2.HTTPError as error:
            raise Unreachable(f"{self.url}: {error or type(error).__name__}") from error

    # -- Downloads, health --------------------------------------------------------------------------------------------

    def download(self, kind: str, identity: str, *, params: Mapping[str, str] | None = None) -> str:
        """The self-contained kernel file of a Run (`kind` "runs") or a Problem ("problems")."""
        path = f"{API}/{kind}/{identity}/download"
        return self._send("GET", path, params=dict(params or {}), headers={"accept": "*/*"}).text

    def ready(self) -> JsonObject:
        """What /readyz says. Raises while the service is not ready."""
        return self._object(self._send("GET", "/readyz"))

    # -- Transport ----------------------------------------------------------------------------------------------------

    def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        if method == "POST":
            options["headers"] = {"idempotency-key": uuid.uuid4().hex, **options.get("headers", {})}
        try:
            response = self._http.request(method, path, **options)
        except httpx2.TimeoutException as error:
            raise Unreachable(f"{self.url} did not answer {method} {path} in time") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(f"nobody answers at {self.url} ({error or type(error).__name__})") from error
        if response.is_error:
            raise _error_of(response)
        return response

    @staticmethod
    def _object(response: httpx2.Response) -> JsonObject:
        try:
            value = response.json()
        except ValueError as error:
            raise ServiceFailed(f"{response.url} answered with something that is not JSON") from error
        if not isinstance(value, dict):
            raise ServiceFailed(f"{response.url} answered with a {type(value).__name__} where an object was due")
        return value


def _event_of(kind: str, identity: str, data: str) -> Event:
    """An event of the stream; the data may be the whole event or its `data` alone."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise ServiceFailed(f"event {identity} is not JSON") from error
    if isinstance(value, dict) and "seq" in value and "kind" in value:
        return Event.read(value)
    if not identity.isdigit():
        raise ServiceFailed(f"event {kind!r} has no sequence number")
    return Event(
        seq=int(identity), kind=kind, created_at="", data=value, raw={"seq": int(identity), "kind": kind, "data": value}
    )


def _error_of(response: httpx2.Response) -> WarpwrightError:
    """A problem document (RFC 9457) as the error it stands for."""
    try:
        problem = response.json()
        detail = str(problem.get("detail") or problem.get("title") or "")
        slug = str(problem.get("type") or "").rsplit("/", 1)[-1]
        for entry in problem.get("errors", ())[:5]:
            detail += f"\n  {entry.get('field') or entry.get('loc') or ''}: {entry.get('message') or entry.get('msg')}"
    except (ValueError, AttributeError):
        detail, slug = response.text[:300], ""
    message = detail or f"{response.status_code} for {response.url}"
    if response.status_code < 500:
        return Refused(message, status=response.status_code, slug=slug)
    return ServiceFailed(f"the service failed ({response.status_code}): {message}")
