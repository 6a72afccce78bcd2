"""Fenced code blocks of a Markdown text, as language models write them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_MAX_CLOSERS = 8  # closing fences tried for one block; code rarely quotes more


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `closed` is False where the reply ended inside it."""

    language: str
    text: str
    closed: bool


@dataclass(frozen=True, slots=True)
class _Opening:
    indent: str
    fence: str
    language: str

    def closed_by(self, line: str) -> bool:
        found = _FENCE.match(line)
        return found is not None and found["fence"].startswith(self.fence) and not found["info"].strip()

    def block(self, lines: list[str], *, closed: bool) -> Block:
        """Make the block, less the indentation that all its lines have (an item of a list)."""
        text = "\n".join(lines) + "\n"
        first = next((line for line in lines if line.strip()), "")
        return Block(self.language, textwrap.dedent(text) if first[:1].isspace() else text, closed)


def find_blocks(text: str, is_whole: Callable[[str], bool] = lambda _: False) -> list[Block]:
    """Return every fenced block of a Markdown text, an unclosed last one included.

    The first closing fence ends a block, unless the text up to a later one is `is_whole`: a docstring may quote fences.
    A fence at the end of the last line of code, or before a tag, ends a block that is then `is_whole`, too.
    """
    lines = text.split("\n")
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        at += 1
        if opening is not None:
            block, at = _read(opening, lines, at, is_whole)
            blocks.append(block)
    return blocks


def _opening(line: str) -> _Opening | None:
    found = _FENCE.match(line)
    if found is None:
        return None
    words = found["info"].lower().split()
    return _Opening(found["indent"], found["fence"], words[0] if words else "")


def _read(opening: _Opening, lines: list[str], start: int, is_whole: Callable[[str], bool]) -> tuple[Block, int]:
    """Return the block with content from line `start` on, and the index of the line after it."""
    first: tuple[Block, int] | None = None
    for tried, (content, end) in enumerate(_endings(opening, lines, start)):
        found = opening.block(content, closed=True), end
        if is_whole(found[0].text):
            return found
        if first is None and opening.closed_by(lines[end - 1]):
            first = found
        if tried == _MAX_CLOSERS:
            break
    return first or (opening.block(_without_last_empty(lines[start:]), closed=False), len(lines))


def _endings(opening: _Opening, lines: list[str], start: int) -> Iterator[tuple[list[str], int]]:
    """Yield each possible content of a block, and the index of the line after its end."""
    for index in range(start, len(lines)):
        line = lines[index]
        if opening.closed_by(line) or line.strip().startswith(f"{opening.fence}<"):
            yield lines[start:index], index + 1
        elif line.rstrip().endswith(opening.fence) and _FENCE.match(line) is None:
            yield [*lines[start:index], line.rstrip().removesuffix(opening.fence)], index + 1


def _without_last_empty(lines: list[str]) -> list[str]:
    return lines[:-1] if lines and not lines[-1] else lines
