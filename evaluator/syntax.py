"""Parse Python source, one text at a time: two parses in two threads may end in a SystemError.

That is a fault of CPython before 3.13 (gh-106905): the depth of recursion is kept once for all threads.
"""

from __future__ import annotations

import ast
import threading

TOO_DEEP = "it is nested too deeply: split its longest expressions into several statements"
_PARSING = threading.Lock()


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a module. Raise what `ast.parse` raises."""
    with _PARSING:
        return ast.parse(source)
