"""Bodies that are too large or too slow are refused before any parsing."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http import problem_details

# The rest of the body is not read, so the connection cannot be reused.
CLOSE = {"Connection": "close"}


class _Refused(Exception):
    def __init__(self, status: int, slug: str, title: str, detail: str) -> None:
        super().__init__(detail)
        self.members = problem_details.document(status, slug, title, detail)


class BodyLimit:
    """Reads a whole body of at most `max_bytes` within `deadline_s`, then passes it on in one message."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, deadline_s: float) -> None:
        self.app = app
        self.max_bytes = max_bytes
        self.deadline_s = deadline_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(Headers(scope=scope), receive)
        except _Refused as refusal:
            await problem_details.response(refusal.members, CLOSE)(scope, receive, send)
            return
        if body is None:
            return
        delivered = False

        async def replay() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        declared = headers.get("content-length", "0")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self.max_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(self.deadline_s):
                return await self._collect(receive)
        except TimeoutError:
            raise _Refused(
                408,
                "too-slow",
                "The request arrived too slowly",
                f"The body was not complete after {self.deadline_s:g} seconds; send it again in one go.",
            ) from None

    async def _collect(self, receive: Receive) -> bytes | None:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self.max_bytes:
                raise self._too_large()
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    def _too_large(self) -> _Refused:
        return _Refused(413, "too-large", "The request is too large", f"A request has at most {self.max_bytes} bytes.")
