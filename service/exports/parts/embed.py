"""Text inside Python source: literals that read well and never break out."""

from __future__ import annotations


def raw_literal(text: str) -> str:
    """Return a Python literal of `text`: a raw triple-quoted string if that is exact, else escaped lines."""
    for quotes in ("'''", '"""'):
        if _fits(text, quotes):
            return f"r{quotes}{text}{quotes}"
    lines = text.splitlines(keepends=True) or [""]
    return "(\n" + "".join(f"    {line!a}\n" for line in lines) + ")"


def _fits(text: str, quotes: str) -> bool:
    plain = all(character in "\n\t" or character.isprintable() for character in text)
    return plain and quotes not in text and not text.endswith(("\\", quotes[0]))


def one_line(text: str) -> str:
    """Return `text` as one printable line that cannot end a docstring."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown.replace("\\", "/").replace('"', "'")[:200]
