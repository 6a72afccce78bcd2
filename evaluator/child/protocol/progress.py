"""Report a program's progress below a tool, to the process that started the tool."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRESS_VARIABLE = "WARP_WORDS"


class Progress:
    """A file that always holds the latest report, so it can be read after a crash."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reported: dict[str, Any] = {}

    def report(self, **progress: Any) -> None:
        self._reported |= progress
        staged = self._path.with_suffix(".new")
        staged.write_text(json.dumps(self._reported), encoding="utf-8")
        staged.replace(self._path)


def run_reporting(do: Callable[[Progress], None]) -> None:
    """Run `do`. Report "done" at its end, or the "error" that it raised."""
    progress = Progress(Path(os.environ[PROGRESS_VARIABLE]))
    try:
        do(progress)
        progress.report(done=True)
    except BaseException as error:
        progress.report(error=f"{type(error).__name__}: {error}"[:1000])
        raise
