"""Requests and answers of every operation, blocking or awaited."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2

from warpwright.api.decoding import decode
from warpwright.errors import BadUsage, Refused, ServiceFailed, Unreachable, WarpwrightError

T = TypeVar("T")
MAX_FIELDS_SHOWN = 5


def quoted(part: str) -> str:
    """Return an id as one segment of a path, with all special characters escaped."""
    return quote(part, safe="")


def headers_for(api_key: str | None) -> dict[str, str]:
    """Return the headers of every request; `api_key`, else $WARPWRIGHT_API_KEY, is sent. Raises BadUsage."""
    headers = {"accept": "application/json", "user-agent": "warpwright"}
    key = api_key or os.environ.get("WARPWRIGHT_API_KEY")
    if key and not (key.isascii() and key.isprintable()):
        raise BadUsage("the API key (WARPWRIGHT_API_KEY) has characters that no key has: copy it again")
    if key:
        headers["authorization"] = f"Bearer {key}"
    return headers


def options_of(method: str, body: Mapping[str, Any] | None, query: Mapping[str, Any] | None, key: str | None) -> Any:
    """Return a request's options; None values are not sent. A POST gets an idempotency key, so a retry acts once."""
    options: dict[str, Any] = {}
    if body is not None:
        options["json"] = {name: value for name, value in body.items() if value is not None}
    if query is not None:
        options["params"] = {name: value for name, value in query.items() if value is not None}
    if method == "POST":
        options["headers"] = {"idempotency-key": key or uuid.uuid4().hex}
    return options


def json_of(response: httpx2.Response) -> Any:
    """Return the JSON of an answer. Raises the error that the answer reports."""
    if response.is_error:
        raise error_of(response)
    try:
        return response.json()
    except ValueError as error:
        raise ServiceFailed(f"the answer of {response.url} is not JSON") from error


def text_of(response: httpx2.Response) -> str:
    """Return the text of an answer. Raises the error that the answer reports."""
    if response.is_error:
        raise error_of(response)
    return response.text


def unreachable(url: str, error: Exception) -> Unreachable:
    """Return a failure below HTTP as the client's error."""
    if isinstance(error, httpx2.TimeoutException):
        return Unreachable(f"{url} did not answer in time")
    return Unreachable(f"no service answers at {url} ({error or type(error).__name__})")


def error_of(response: httpx2.Response) -> WarpwrightError:
    """Return the error that a problem document (RFC 9457) reports."""
    try:
        problem = response.json()
        detail = str(problem.get("detail") or problem.get("title") or "")
        slug = str(problem.get("type") or "").rsplit("/", 1)[-1]
        for entry in (problem.get("errors") or ())[:MAX_FIELDS_SHOWN]:
            detail += f"\n  {entry.get('field') or ''}: {entry.get('message')}"
    except (ValueError, AttributeError):
        page = "html" in response.headers.get("content-type", "")
        detail, slug = "" if page else response.text[:300], ""
        if page:
            detail = f"{response.url} answered {response.status_code} with a page: is that the address of a service?"
    message = detail or f"{response.status_code} for {response.url}"
    if response.status_code == 401:
        message += " It is taken from WARPWRIGHT_API_KEY."
    if response.status_code < 500:
        return Refused(message, status=response.status_code, slug=slug)
    return ServiceFailed(f"the service failed ({response.status_code}): {message}")


class Caller:
    """Sends requests and blocks until their answers."""

    url: str
    http: httpx2.Client

    def call(
        self,
        kind: type[T],
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> T:
        """Send a request and return its answer as `kind`."""
        return decode(kind, json_of(self.send(method, path, options_of(method, body, query, key))))

    def text(self, _: type[str], method: str, path: str, *, query: Mapping[str, Any] | None = None) -> str:
        """Send a request and return its answer as text."""
        options = options_of(method, None, query, None)
        return text_of(self.send(method, path, {**options, "headers": {"accept": "*/*"}}))

    def data(self, _: type[bytes], method: str, path: str, *, query: Mapping[str, Any] | None = None) -> bytes:
        """Send a request and return its answer as bytes."""
        options = options_of(method, None, query, None)
        response = self.send(method, path, {**options, "headers": {"accept": "*/*"}})
        if response.is_error:
            raise error_of(response)
        return response.content

    def send(self, method: str, path: str, options: Mapping[str, Any]) -> httpx2.Response:
        """Send a request. Raises Unreachable."""
        try:
            return self.http.request(method, path, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise unreachable(self.url, error) from error


class AsyncCaller:
    """Sends requests and awaits their answers."""

    url: str
    http: httpx2.AsyncClient

    async def call(
        self,
        kind: type[T],
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> T:
        """Send a request and return its answer as `kind`."""
        return decode(kind, json_of(await self.send(method, path, options_of(method, body, query, key))))

    async def text(self, _: type[str], method: str, path: str, *, query: Mapping[str, Any] | None = None) -> str:
        """Send a request and return its answer as text."""
        options = options_of(method, None, query, None)
        return text_of(await self.send(method, path, {**options, "headers": {"accept": "*/*"}}))

    async def data(self, _: type[bytes], method: str, path: str, *, query: Mapping[str, Any] | None = None) -> bytes:
        """Send a request and return its answer as bytes."""
        options = options_of(method, None, query, None)
        response = await self.send(method, path, {**options, "headers": {"accept": "*/*"}})
        if response.is_error:
            raise error_of(response)
        return response.content

    async def send(self, method: str, path: str, options: Mapping[str, Any]) -> httpx2.Response:
        """Send a request. Raises Unreachable."""
        try:
            return await self.http.request(method, path, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise unreachable(self.url, error) from error
