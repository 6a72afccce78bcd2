"""Opaque cursors: the position where a list continues. A cursor fits one list and is refused anywhere else."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Annotated

from fastapi import Query

from evaluator.types import content_hash
from service.errors import BadRequest

MAX_LIMIT = 200
_SHAPE = re.compile(r"[A-Za-z0-9_-]{4,400}\Z")

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items.")]
Cursor = Annotated[
    str | None,
    Query(max_length=400, description="`next_cursor` of the previous page; omit for the first page."),
]
Search = Annotated[
    str | None,
    Query(min_length=1, max_length=100, pattern=r"^[^\x00]*$", description="A part of the name; case does not matter."),
]


def encode_cursor(list_name: str, position: str) -> str:
    """Return the cursor that resumes `list_name` after `position` (the sort key of the last item sent).

    `list_name` names everything that the list depends on, its filters too, so a cursor fits only its own list.
    """
    text = json.dumps([content_hash(list_name)[:16], position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(list_name: str, cursor: str | None) -> str | None:
    """Return the position of a cursor, or None without one. Raise BadRequest for a cursor that is not ours."""
    if cursor is None:
        return None
    position = _position(content_hash(list_name)[:16], cursor)
    if position is None or encode_cursor(list_name, position) != cursor:
        raise BadRequest(
            "This cursor does not belong to this list: use next_cursor of the previous page, unchanged, "
            "or omit it to start from the beginning.",
            slug="bad-cursor",
            title="Invalid cursor",
        )
    return position


def _position(digest: str, cursor: str) -> str | None:
    if not _SHAPE.match(cursor):
        return None
    try:
        value = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode())
    except (binascii.Error, ValueError, RecursionError):
        return None
    match value:
        case [str(name), str(position)] if name == digest and position.isprintable():
            return position
    return None
