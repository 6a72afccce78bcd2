"""Read a record of bench/results and pick the part of it that a row is about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"

Entry = dict[str, Any]


def document(name: str) -> Entry:
    """Return a record that is one JSON document."""
    found: Entry = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def entries(name: str, sessions: Sequence[str] = ()) -> list[Entry]:
    """Return the lines of a record, headers left out.

    A header line (`seen_on`, `about`) starts a session. `sessions` names the sessions to keep by the beginning of
    their time of measurement; by default all are kept.
    """
    kept: list[Entry] = []
    wanted = not sessions
    for line in (RESULTS / name).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        header = entry.get("seen_on") or entry.get("about")
        if header is None:
            if wanted:
                kept.append(entry)
        elif sessions:
            wanted = header["measured_at"].startswith(tuple(sessions))
    return kept


def ratio(value: Entry, digits: int = 2) -> str:
    """Return a ratio with its interval, as `1.18 (1.03 to 1.35)`."""
    return f"{value['ratio']:.{digits}f} ({value['low']:.{digits}f} to {value['high']:.{digits}f})"
