"""Static files, addressed by content so that browsers may cache them for ever."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

ASSETS = Path(__file__).parent.parent / "static"
_COMPRESSIBLE = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_LEAST_BYTES = 1000


@cache
def asset(name: str) -> str:
    """Return the address of a static file, with its content's hash in the query."""
    digest = hashlib.sha256((ASSETS / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


@cache
def _packed(path: Path, changed_ns: int) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)


class Assets(StaticFiles):
    """Static files, compressed for browsers that accept that; an address with a version is cached for a year."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the file, or 304 where the client has it."""
        response = await super().get_response(path, scope)
        if response.status_code == 200:
            response = self._pack(path, scope, response)
        if response.status_code in (200, 304):
            if scope.get("query_string", b"").startswith(b"v="):
                response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
            elif path.endswith(".woff2"):
                # A style sheet names it without a version. A week is long enough, and a font hardly ever changes.
                response.headers["Cache-Control"] = "public, max-age=604800"
        return response

    def _pack(self, path: str, scope: Scope, response: Response) -> Response:
        full, stat = self.lookup_path(path)
        kind = _COMPRESSIBLE.get(Path(full).suffix)
        if kind is None or stat is None or stat.st_size < _LEAST_BYTES:
            return response
        response.headers["Vary"] = "Accept-Encoding"
        if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            return response
        headers = {key: response.headers[key] for key in ("etag", "last-modified", "vary") if key in response.headers}
        headers["Content-Encoding"] = "gzip"
        return Response(_packed(Path(full), stat.st_mtime_ns), headers=headers, media_type=kind)
