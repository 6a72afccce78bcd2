"""Text inside Python source: literals that read well and never break out."""

from __future__ import annotations

import io
import tokenize
from typing import Any


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


def indented(source: str) -> str:
    """Return source for the inside of a `try:`. Lines inside of strings stay as they are, but those of docstrings."""
    inside: set[int] = set()
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        docstring = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.ENCODING)
        if token.type == tokenize.STRING and not docstring:
            inside |= set(range(token.start[0] + 1, token.end[0] + 1))
        before = token.type
    lines = source.rstrip("\n").split("\n")
    return "\n".join(f"    {line}" if line and n not in inside else line for n, line in enumerate(lines, 1)) + "\n"


def literal(tree: Any, tensor: str = "...") -> str:
    """Return the Python source of a value that an Admission recorded as a JSON tree, with `tensor` for each tensor."""
    if not isinstance(tree, dict):
        return repr(tree)
    ((kind, body),) = tree.items()
    if kind == "tensor":
        return tensor
    if kind == "float":
        value = float.fromhex(body)
        return repr(value) if value - value == 0 else f"float('{value}')"
    if kind == "dtype":
        return f"torch.{body}"
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {literal(item, tensor)}" for key, item in body.items()) + "}"
    items = ", ".join(literal(item, tensor) for item in body)
    return f"[{items}]" if kind == "list" else f"({items}{',' if len(body) == 1 else ''})"
