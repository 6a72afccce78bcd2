"""Tests replace what a module offers for it, never its private names: those may be renamed without a look at tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PRIVATE = re.compile(
    r"""
    setattr\(\s*[^,()]+(\([^()]*\))?,\s*["']_[A-Za-z]  # setattr(module, "_NAME", ...)
    | setattr\(\s*["'][\w.]+\._[A-Za-z]                # setattr("module._NAME", ...)
    | ^\s*\w+\._[A-Z][A-Z_]+\s=\s                      # module._NAME = ...
    """,
    re.VERBOSE | re.MULTILINE,
)


def test_no_test_patches_a_private_name() -> None:
    found = []
    for path in TESTS.rglob("*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        found += [f"{path.name}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in PRIVATE.finditer(text)]
    assert not found, "give the code an argument, an attribute or a setting instead: " + "; ".join(found)


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ('monkeypatch.setattr(judging, "_RULES", QUICK)', True),
        ('patch.setattr(\n    judging, "_RULES", QUICK\n)', True),
        ('monkeypatch.setattr("evaluator.cage.host._bubblewrap", missing)', True),
        ("    judge._JUDGE_RULES = QUICK", True),
        ('monkeypatch.setattr(judge, "protocol", QUICK)', False),
        ("self._answered = set()", False),
    ],
)
def test_what_counts_as_one(line: str, caught: bool) -> None:
    assert (PRIVATE.search(line) is not None) == caught


def test_what_runs_in_threads_parses_one_text_at_a_time() -> None:
    """CPython before 3.13 may fail where two threads parse at once; `evaluator.syntax.parse` holds a lock."""
    bare = [
        str(path)
        for room in ("prompts", "db")
        for path in (TESTS.parent / room).rglob("*.py")
        if "ast.parse(" in path.read_text(encoding="utf-8")
    ]
    assert bare == []
