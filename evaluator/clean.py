"""Clean children's texts and values for a result: plain, finite, of moderate size, and storable everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_TEXT = 8000
_ITEMS = 200
_DEPTH = 8
_TOTAL = 64_000
# Control characters except tab and line feed, and halves of surrogate pairs: not every database accepts them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean_text(text: str, limit: int = _TEXT) -> str:
    """Return the text with unprintable characters escaped, and without its middle if it is too long."""
    if len(text) > limit:
        text = f"{text[: limit // 2]} ... {text[-limit // 2 :]}"
    text = text.replace("\r\n", "\n")
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def clean(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the same content within limits. "left_out" names the dropped keys."""
    found: dict[str, Any] = {}
    room = _TOTAL
    for key, item in value.items():
        kept = _clean(item, 0)
        size = _size(kept)
        if size > room:
            found.setdefault("left_out", []).append(clean_text(key, 80))
            continue
        room -= size
        found[clean_text(key, 200)] = kept
    return found


def _clean(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else clean_text(hex(value), 100)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return clean_text(value)
    if depth >= _DEPTH:
        return "..."
    if isinstance(value, Mapping):
        pairs = list(value.items())[:_ITEMS]
        return {clean_text(str(key), 200): _clean(item, depth + 1) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value[:_ITEMS]]
    return clean_text(str(value), 200)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(len(key) + 4 + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(1 + _size(item) for item in value)
    return 8
