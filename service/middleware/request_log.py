"""The outermost layer: an id for every request, bound to its log lines and Jobs, and one log line each."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from db import origin
from runtime.logs import get_logger

log = get_logger(__name__)

QUIET = ("/healthz", "/readyz", "/metrics", "/static/")
"""Polled every few seconds by machines, or loaded by every page: not worth a line."""

_NOUNS = {
    "run": "run_id",
    "cand": "candidate_id",
    "prop": "proposal_id",
    "prob": "problem_id",
    "eval": "evaluation_id",
}


class RequestLog:
    """Returns the id as X-Request-ID; `db.origin` passes it to the Jobs that the request enqueues."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(8)}"
        answer: dict[str, Any] = {"status": 0}

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
                location = Headers(raw=message.get("headers", [])).get("location")
                answer.update({"location": location} if location else {})
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        began = time.perf_counter()
        with origin.originating(request_id), structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, watch)
            finally:
                _log_request(scope, answer, time.perf_counter() - began)


def _log_request(scope: Scope, answer: dict[str, Any], seconds: float) -> None:
    """Write one line: method, path, status (0: none was sent), and the ids of the run, candidate, ... concerned."""
    path = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("ascii", "replace")
    level = logging.DEBUG if path.startswith(QUIET) else logging.INFO
    route = scope.get("route")
    ids = {
        _NOUNS[value.partition("_")[0]]: value
        for value in scope.get("path_params", {}).values()
        if isinstance(value, str) and value.partition("_")[0] in _NOUNS and len(value) <= 60
    }
    log.log(
        level,
        "request.answered",
        method=scope["method"][:20],
        path=path[:300],
        operation=getattr(route, "operation_id", None) or getattr(route, "path", None),
        ms=round(seconds * 1000, 1),
        **ids,
        **answer,
    )
