"""Downloads: a value in one of its export formats, as a file."""

from __future__ import annotations

import base64
import hashlib

from starlette.responses import Response

from service.exports import Format
from service.exports.base import Subject


def attachment(form: Format[Subject], subject: Subject, stem: str, *, digest: bool = False) -> Response:
    """Return the answer that a browser stores as STEM.EXTENSION, with its SHA-256 (RFC 9530) if that is wanted."""
    built = form.build(subject)
    data = built if isinstance(built, bytes) else built.encode("utf-8", "replace")
    headers = {
        "Content-Disposition": f'attachment; filename="{form.file_name or f"{stem}.{form.extension}"}"',
        "Cache-Control": "no-cache",
    }
    if digest:
        headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"
    return Response(data, headers=headers, media_type=form.media_type)
