"""Output of the commands: data to `out` (standard output), progress and remarks to `err` (standard error)."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

NON_TERMINAL_COLUMNS = 200
"""Width of a table in a file or a pipe, where no screen limits it."""

out = Console(highlight=False, width=None if sys.stdout.isatty() else NON_TERMINAL_COLUMNS)
err = Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """Print a remark for a person to standard error, without markup."""
    err.print(message, markup=False, soft_wrap=True)


def _json_default(value: Any) -> dict[str, Any]:
    """Return an answer of the API, or any mapping, as a dictionary."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(value)


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_json_default) + "\n")
    sys.stdout.flush()


def print_rows(rows: Sequence[Any], table: Callable[[Any, int], Any], what: str, *, as_json: bool) -> None:
    """Print a list as JSON or as a table; remark on standard error that there is none."""
    if as_json:
        print_json(rows)
    elif rows:
        out.print(table(rows, out.width))
    else:
        say(f"no {what} yet")


def print_json_line(value: Any) -> None:
    """Print one JSON document on one line, for streams."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_json_default) + "\n")
    sys.stdout.flush()
