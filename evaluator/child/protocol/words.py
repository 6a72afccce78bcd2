"""What a program beneath a tool writes down while it runs, for whoever started the tool."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS_VARIABLE = "WARP_WORDS"


class Words:
    """A file that always holds the last thing said: whoever reads it may come after a crash."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said: dict[str, Any] = {}

    def say(self, **words: Any) -> None:
        self._said |= words
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(self._said), encoding="utf-8")
        beside.replace(self._path)


def told(do: Callable[[Words], None]) -> None:
    """Run `do`; at its end "done" is said, or the "error" that it raised."""
    words = Words(Path(os.environ[WORDS_VARIABLE]))
    try:
        do(words)
        words.say(done=True)
    except BaseException as error:
        words.say(error=f"{type(error).__name__}: {error}"[:1000])
        raise
