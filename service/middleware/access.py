"""A Host allow-list against DNS rebinding, and a refusal of requests from other sites' pages."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import BadRequest, Forbidden, ServiceError
from service.http import problem_details

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def host_name(value: str) -> str:
    """Return a Host header without its port, in lower case; IPv6 addresses keep their brackets."""
    name = value.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.rpartition(":")[0] if ":" in name else name


class AccessControl:
    """Refuses foreign hosts and origins before anything of the request is read."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str]) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope["method"], Headers(scope=scope))
            except ServiceError as error:
                members = problem_details.document(error.status, error.slug, error.title, error.detail)
                await problem_details.response(members, error.headers)(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)

    def _check(self, method: str, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or ("*" not in self.hosts and host_name(hosts[0]) not in self.hosts):
            raise BadRequest(
                "The Host header names a host that this service does not answer for. "
                "If it is yours, add it to WARPWRIGHT_ALLOWED_HOSTS.",
                slug="unknown-host",
                title="This host is not served here",
            )
        if method not in SAFE_METHODS:
            _check_origin(headers, hosts[0])


def _check_origin(headers: Headers, host: str) -> None:
    """Refuse changes from another site's page, which the browser names."""
    origin = headers.get("origin")
    if (origin is not None and _site_of(origin) != host.strip().lower()) or headers.get(
        "sec-fetch-site", "same-origin"
    ) not in ("same-origin", "none"):
        raise Forbidden(
            "A page of another site sent this request; only this service's own pages and programs may.",
            slug="cross-origin",
            title="Requests from other sites are refused",
        )


def _site_of(origin: str) -> str | None:
    """Return the host and port of an Origin header, or None where it cannot be read."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None
