"""Reading a reply: the one source in it, found among prose, fences and edits, or a reason why there is none."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from prompts.edits import apply_edits, find_edits
from prompts.errors import ReplyError

MAX_SOURCE_BYTES = 256 * 2**10
MODEL = "ModelNew"

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_OTHER_LANGUAGES = frozenset({"cpp", "c++", "c", "cuda", "cu", "rust", "javascript", "js", "java", "go", "bash", "sh"})


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `closed` is False where the reply ended inside it."""

    language: str
    text: str
    closed: bool


def read_reply(reply: str, *, parent: str | None = None, truncated: bool = False) -> str:
    """The Candidate's source in a reply: a whole file, or edits of `parent`.

    Of several blocks the last complete Python module with `class ModelNew` is taken. `truncated` says that the
    endpoint stopped at its token limit. Raises ReplyError with what to write instead.
    """
    text = _THINKING.sub("", reply).replace("\r\n", "\n")
    if not text.strip():
        raise ReplyError("the reply is empty: answer with one fenced Python block that holds the whole file")
    if parent is not None and "SEARCH" in text and (edits := find_edits(text)):
        return checked(apply_edits(parent, edits))
    blocks = find_blocks(text)
    if not blocks and _is_module(text):
        return checked(text)
    return checked(_choose(blocks, truncated=truncated))


def find_blocks(text: str) -> list[Block]:
    """Every fenced block of a Markdown text, an unclosed last one included."""
    blocks: list[Block] = []
    fence = ""
    info = ""
    lines: list[str] = []
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence:
            if found:
                fence, info, lines = found["fence"], found["info"].strip().lower(), []
        elif (
            found and found["fence"][0] == fence[0] and len(found["fence"]) >= len(fence) and not found["info"].strip()
        ):
            blocks.append(Block(info.split()[0] if info else "", "\n".join(lines) + "\n", True))
            fence = ""
        else:
            lines.append(line)
    if fence:
        blocks.append(Block(info.split()[0] if info else "", "\n".join(lines) + "\n", False))
    return blocks


def checked(source: str) -> str:
    """The source, if it is a Python module of acceptable size that defines ModelNew. Raises ReplyError."""
    size = len(source.encode(errors="surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise ReplyError(f"the file has {size} bytes; at most {MAX_SOURCE_BYTES} are taken: write a shorter one")
    try:
        source.encode()
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ReplyError(f"the file is not Python: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ReplyError(f"the file is not Python: {error}") from error
    if not any(isinstance(node, ast.ClassDef) and node.name == MODEL for node in tree.body):
        raise ReplyError(f"the file defines no class {MODEL} at its top level")
    return source


def _choose(blocks: list[Block], *, truncated: bool) -> str:
    if not blocks:
        raise ReplyError("the reply has no code: answer with one fenced Python block that holds the whole file")
    modules = [block for block in blocks if block.closed and _is_module(block.text)]
    if modules:
        return modules[-1].text
    last = blocks[-1]
    if not last.closed or truncated:
        lines = last.text.count("\n")
        raise ReplyError(f"the reply is cut off inside its code, after {lines} lines: write a shorter file")
    named = [block for block in blocks if f"class {MODEL}" in block.text]
    if named:
        return named[-1].text
    if all(block.language in _OTHER_LANGUAGES for block in blocks):
        raise ReplyError(
            f"the reply has {last.language} alone: put native code into a string of a Python module with class {MODEL}"
        )
    raise ReplyError(f"no code block defines class {MODEL}: answer with the whole Python file in one block")


def _is_module(text: str) -> bool:
    try:
        checked(text)
    except ReplyError:
        return False
    return True
