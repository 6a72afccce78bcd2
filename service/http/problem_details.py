"""Errors on the wire: `application/problem+json` (RFC 9457), one shape for ours, validation, 404, 405, 413 and 500."""

from __future__ import annotations

import http
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One wrong field: a JSON pointer into the body, or the name of a parameter; `location` says which."""

    location: str
    field: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetails:
    """An error. `type` names the kind and is stable; `detail` says what to do about this occurrence.

    `errors` lists the fields that are wrong; `line` is the line of the source that was refused; `needed` is the scope
    that a key lacks; `quota`, `used` and `allowed` are a quota that is used up;
    `error_id` finds a 500 in the service's log.
    """

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldError, ...] | None = None
    line: int | None = None
    needed: str | None = None
    quota: str | None = None
    used: float | None = None
    allowed: float | None = None
    error_id: str | None = None


# In the API's document. Routes that named the class would make FastAPI rebuild its schema seven times each: a third of
# the time that the service takes to start.
SCHEMA = {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}


def type_uri(slug: str) -> str:
    """Return the stable name of a kind of error."""
    return f"/errors/{slug}"


def document(status: int, slug: str, title: str, detail: str, **extra: Any) -> dict[str, Any]:
    """Return the members of a problem document; extras that are None are left out."""
    members = {"type": type_uri(slug), "title": title, "status": status, "detail": detail, **extra}
    return {key: value for key, value in members.items() if value is not None}


def response(members: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem response; never cached."""
    body = json.dumps(members, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(
        body,
        status_code=int(members["status"]),
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def for_status(status: int, detail: str, **extra: Any) -> dict[str, Any]:
    """Return a problem document for a plain HTTP status, such as the router's own 404 and 405."""
    phrase = http.HTTPStatus(status).phrase
    return document(status, phrase.lower().replace(" ", "-"), phrase, detail, **extra)


def field_errors(errors: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Convert FastAPI's validation errors, without the offending input, which must not be echoed."""
    found = []
    for error in errors[:20]:
        location, *path = [str(part) for part in error.get("loc", ())] or ["body"]
        field = "".join("/" + part.replace("~", "~0").replace("/", "~1")[:100] for part in path)
        if location != "body":
            field = ".".join(path)
        message = str(error.get("msg", "")).removeprefix("Value error, ")
        if error.get("type") == "json_invalid":  # its path is a position, not a field
            message = f"this is no JSON: {error.get('ctx', {}).get('error', message)}, at character {field[1:]}"
            field = ""
        found.append({"location": location, "field": field[:500], "message": message[:500]})
    return found
