"""The comment with which an imported problem file tells where it is from. Anybody may have written it."""

from __future__ import annotations

import json
import re
from typing import Any

_LINE = re.compile(r"^# warpwright origin: (\{.*\})$", re.MULTILINE)
MOST_BYTES = 1 << 18


def origin(source: str, form: str) -> dict[str, Any]:
    """Return what a problem of this form says of its origin; nothing for another problem or a comment that is none."""
    found = _LINE.findall(source)
    if not found or len(found[-1]) > MOST_BYTES:
        return {}
    try:
        told = json.loads(found[-1])
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) and told.get("format") == form else {}


def text(told: dict[str, Any], key: str, default: str = "") -> str:
    """Return a word of an origin: one line of plain characters that is good for a file's name."""
    value = told.get(key)
    plain = re.sub(r"[^\w.+-]", "_", value)[:200].lstrip(".") if isinstance(value, str) else ""
    return plain or default


def names(told: dict[str, Any], key: str) -> list[str]:
    """Return a list of Python names of an origin; nothing if one of them is none."""
    value = told.get(key)
    good = isinstance(value, list) and all(isinstance(one, str) and one.isidentifier() for one in value)
    return list(value) if good and isinstance(value, list) else []
