"""The outermost layer: an id for every request, and a 500 that leaks nothing but that id."""

from __future__ import annotations

import logging
import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import problem_details

log = logging.getLogger("warpwright.service")


class ErrorBoundary:
    """Turns whatever escapes the application into a problem document, and logs it under an id.

    Where the answer has begun already the connection is cut, so that a client never takes half for whole.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        error_id = secrets.token_hex(8)
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", error_id.encode())]
            await send(message)

        # The last line of defence catches everything: nothing of an error may reach the client.
        try:
            await self.app(scope, receive, watch)
        except Exception:
            log.exception("unhandled error", extra={"error_id": error_id, "path": scope["path"]})
            if started:
                raise
            members = problem_details.document(
                500,
                "internal",
                "Something went wrong on our side",
                f"It was logged as {error_id}; trying again may help.",
                error_id=error_id,
            )
            await problem_details.response(members)(scope, receive, watch)
