"""A 500 that reveals nothing but an id."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from db import origin
from runtime.logs import get_logger
from service.http import problem_details
from service.http.negotiation import respond

log = get_logger(__name__)


class ErrorBoundary:
    """Turns every uncaught exception into an answer, and logs it under the request's id.

    Where the answer has already begun the connection is cut, so that a client never takes half for whole.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        # The last line of defence catches everything: nothing of an error may reach the client.
        try:
            await self.app(scope, receive, watch)
        except Exception:
            error_id = origin.request_id() or "unknown"
            log.exception("request.broke", error_id=error_id)
            if started:
                raise
            members = problem_details.document(
                500,
                "internal",
                "Internal error",
                f"Logged as {error_id}. Try again; if it happens again, give this id to the operator.",
                error_id=error_id,
            )
            await respond(Request(scope), members)(scope, receive, watch)
