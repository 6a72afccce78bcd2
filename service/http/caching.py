"""ETags of immutable things."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

IMMUTABLE = "private, max-age=31536000, immutable"


def etag_matches(header: str, etag: str) -> bool:
    """Tell whether an If-None-Match header names `etag` (weak comparison, RFC 9110 section 13.1.2)."""
    if header.strip() == "*":
        return True
    return any(tag.strip().removeprefix("W/") == etag for tag in header.split(","))


def not_modified(request: Request, content: str) -> tuple[dict[str, str], Response | None]:
    """Return headers for an immutable answer identified by `content` (a hash), and a 304 where the client has it."""
    etag = f'"{content}"'
    headers: Mapping[str, str] = {"ETag": etag, "Cache-Control": IMMUTABLE}
    if etag_matches(request.headers.get("if-none-match", ""), etag):
        return dict(headers), Response(status_code=304, headers=headers)
    return dict(headers), None
