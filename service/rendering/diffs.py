"""The difference of two sources, line by line, with unchanged parts folded away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 4
# Matching is quadratic: above this many lines a page would take seconds.
MAX_LINES = 4000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff. `kind` is same, add, cut or skipped (then `text` says how many lines are left out)."""

    kind: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The lines to show, and how many were added and removed."""

    lines: tuple[Line, ...]
    added: int
    removed: int


def diff(old: str, new: str) -> Diff | None:
    """Return the difference from `old` to `new`; None where they are too long to compare here."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) > MAX_LINES or len(after) > MAX_LINES:
        return None
    lines = tuple(_lines(before, after))
    return Diff(
        lines=lines,
        added=sum(line.kind == "add" for line in lines),
        removed=sum(line.kind == "cut" for line in lines),
    )


def _lines(before: list[str], after: list[str]) -> Iterator[Line]:
    matcher = SequenceMatcher(None, before, after, autojunk=True)
    old_end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        start = group[0][1]
        if start > old_end:
            yield _skipped(start - old_end)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (Line("same", i + 1, j1 + i - i1 + 1, before[i]) for i in range(i1, i2))
                continue
            yield from (Line("cut", i + 1, None, before[i]) for i in range(i1, i2))
            yield from (Line("add", None, j + 1, after[j]) for j in range(j1, j2))
        old_end = group[-1][2]
    if len(before) > old_end:
        yield _skipped(len(before) - old_end)


def _skipped(number: int) -> Line:
    return Line("skipped", None, None, f"{number} unchanged {'line' if number == 1 else 'lines'}")
