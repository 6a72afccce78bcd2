"""Sizes of a further Workload, as a user writes them: `NAME=VALUE`, several with commas."""

from __future__ import annotations

from warpwright.errors import BadUsage

Size = bool | int | float | str


def read_sizes(text: str) -> dict[str, Size]:
    """Return the sizes of one Workload. Raises BadUsage."""
    found: dict[str, Size] = {}
    for part in text.split(","):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not name.isidentifier() or not value or name in found:
            raise BadUsage(f"--size is NAME=VALUE, several with commas, each name once: not {text.strip()!r}")
        found[name] = _value(value)
    return found


def _value(text: str) -> Size:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
