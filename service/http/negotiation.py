"""A page for a browser, a problem document for a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from service.http import problem_details
from service.rendering.templates import page

_PROGRAMS = ("/api/", "/healthz", "/readyz", "/metrics", "/static/")


def wants_page(request: Request) -> bool:
    """Tell whether a browser asks for a page, rather than a program for the API."""
    return not request.url.path.startswith(_PROGRAMS) and "text/html" in request.headers.get("accept", "")


def _error_page(members: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    """Render a problem document as a page."""
    answer = page("error.html", status=int(members["status"]), problem=members)
    answer.headers.update(headers)
    return answer


def respond(request: Request, members: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a problem document, as the client prefers to read it."""
    if wants_page(request):
        return _error_page(members, headers or {})
    return problem_details.response(members, headers)
