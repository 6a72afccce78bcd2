"""Static files, addressed by content so that they can be kept for ever and never be stale."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

ASSETS = Path(__file__).parent.parent / "static"


@cache
def asset(name: str) -> str:
    """The address of a static file, with its content's hash in the query."""
    digest = hashlib.sha256((ASSETS / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


class Assets(StaticFiles):
    """Static files; an address that carries a version is kept for a year."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or 304 where the client has it."""
        response = await super().get_response(path, scope)
        if scope.get("query_string", b"").startswith(b"v=") and response.status_code in (200, 304):
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response
