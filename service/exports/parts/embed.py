"""Text inside Python source: literals that read well and never break out."""

from __future__ import annotations


def raw_literal(text: str) -> str:
    """A Python literal of `text`: a raw triple-quoted string where that is exact, else an escaped one, line by line."""
    for quotes in ("'''", '"""'):
        if _fits(text, quotes):
            return f"r{quotes}{text}{quotes}"
    lines = text.splitlines(keepends=True) or [""]
    return "(\n" + "".join(f"    {line!a}\n" for line in lines) + ")"


def _fits(text: str, quotes: str) -> bool:
    plain = all(character in "\n\t" or character.isprintable() for character in text)
    return plain and quotes not in text and not text.endswith(("\\", quotes[0]))


def one_line(text: str) -> str:
    """`text` for a docstring: one printable line that cannot end it."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown.replace("\\", "/").replace('"', "'")[:200]
