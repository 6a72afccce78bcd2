"""Where words go: data to `out` (standard output), progress and remarks to `err` (standard error)."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

WIDE = 200
"""Columns where standard output is no terminal: a table in a file or a pipe is not folded to fit a screen."""

out = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
err = Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """One remark for a person, on standard error, as it is (no markup)."""
    err.print(message, markup=False, soft_wrap=True)


def _plain(value: Any) -> dict[str, Any]:
    """What JSON does not know: an answer of the API, or a mapping."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(value)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")
    sys.stdout.flush()


def print_rows(rows: Sequence[Any], table: Callable[[Any], Any], what: str, *, as_json: bool) -> None:
    """A list on standard output: as JSON, as the table that `table` makes of it, or the remark that there is none."""
    if as_json:
        print_json(rows)
    elif rows:
        out.print(table(rows))
    else:
        say(f"no {what} yet")


def print_json_line(value: Any) -> None:
    """One JSON document on one line, for streams."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain) + "\n")
    sys.stdout.flush()
