"""CSRF tokens: a browser session's writes carry the token in X-CSRF-Token, or as a form's `csrf_token`."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Forbidden
from service.http.handlers import refusal
from service.identity.principal import Principal
from service.middleware.access import SAFE_METHODS

FORM = "application/x-www-form-urlencoded"


class CsrfGuard:
    """Stands inside the body limit, so that a form arrives in one message. Requests with a key need no token."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who: Principal | None = scope.get("principal") if scope["type"] == "http" else None
        if who is None or who.csrf_token is None or scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        first = await receive()
        given = headers.get("x-csrf-token") or _field(headers, first)
        if not hmac.compare_digest(given.encode("utf-8", "replace"), who.csrf_token.encode()):
            error = Forbidden(
                "The page is out of date, or belongs to another site: reload it and try again.",
                slug="csrf",
                title="The session's token is missing or wrong",
            )
            await refusal(Request(scope), error)(scope, receive, send)
            return
        handed = False

        async def again() -> Message:
            nonlocal handed
            if handed:
                return await receive()
            handed = True
            return first

        await self.app(scope, again, send)


def _field(headers: Headers, message: Message) -> str:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return ""
    try:
        fields = parse_qs(message.get("body", b"").decode("utf-8"), max_num_fields=100)
    except (UnicodeDecodeError, ValueError):
        return ""
    return str(fields.get("csrf_token", [""])[0])
