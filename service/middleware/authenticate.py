"""Authentication and rate limits, before any of the body is read; browsers without a session go to the login page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import ServiceError, Unauthorized
from service.http.addresses import Network, address_of, block_of, is_forwarded
from service.http.handlers import DATABASE_AWAY, database_away, refusal
from service.http.limits import Limits, check_guesses, count_guess
from service.http.negotiation import wants_page
from service.identity.authentication import Authenticator
from service.identity.principal import LOCAL, VIEWER, Principal

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
OPEN_PREFIX = "/static/"


class Authenticate:
    """Puts the Principal and the address into the request's scope, or answers 401, 429 or a redirect to the login."""

    def __init__(
        self, app: ASGIApp, *, authenticator: Authenticator, limits: Limits, trusted: Sequence[Network] = ()
    ) -> None:
        self.app = app
        self.authenticator = authenticator
        self.limits = limits
        self.trusted = trusted
        self.threads = 8
        self._limiter: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["address"] = address = address_of(scope, self.trusted)
        try:
            who = await self._who(scope, address)
        except ServiceError as error:
            await self._refuse(scope, error)(scope, receive, send)
            return
        except DATABASE_AWAY:
            await database_away(Request(scope))(scope, receive, send)
            return
        scope["principal"] = who
        token = VIEWER.set(who)
        try:
            await self.app(scope, receive, send)
        finally:
            VIEWER.reset(token)

    async def _who(self, scope: Scope, address: str) -> Principal | None:
        block = block_of(address)
        if not self.authenticator.keyless:
            self.limits.addresses.take(block)
        if scope["path"] in OPEN_PATHS or scope["path"].startswith(OPEN_PREFIX):
            return None
        headers = Headers(scope=scope)
        authorization = headers.get("authorization")
        key = (authorization or "").partition(" ")[2].strip()
        if authorization is not None:
            check_guesses(self.limits, block, key)
        cookies = cookie_parser(headers.get("cookie", ""))
        try:
            who = await self._in_thread(authorization, cookies, is_forwarded(scope))
        except Unauthorized:
            count_guess(self.limits, block, key)
            raise
        if who is None:
            raise Unauthorized("Send an API key: Authorization: Bearer KEY.", headers={"WWW-Authenticate": "Bearer"})
        if who is not LOCAL:
            self.limits.keys.take(who.credential or who.actor)
        return dataclasses.replace(who, address=address)

    async def _in_thread(self, authorization: str | None, cookies: dict[str, str], forwarded: bool) -> Principal | None:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.threads)  # own threads, so that slow routes cannot delay it
        return await anyio.to_thread.run_sync(
            lambda: self.authenticator.of_request(authorization, cookies, forwarded=forwarded), limiter=self._limiter
        )

    @staticmethod
    def _refuse(scope: Scope, error: ServiceError) -> Response:
        request = Request(scope)
        if isinstance(error, Unauthorized) and request.method in ("GET", "HEAD") and wants_page(request):
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(target, safe='/')}", status_code=303)
        return refusal(request, error)
