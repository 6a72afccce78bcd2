"""Parse a reply: find the one source among reasoning, prose, fences and edits, or explain why there is none."""

from __future__ import annotations

import ast
import json
import re

from evaluator.syntax import parse
from evolution.plans import without_thoughts
from evolution.types import Fault
from prompts.blocks import Block, find_blocks
from prompts.edits import apply_edits, find_edits
from prompts.errors import ReplyError

MAX_SOURCE_BYTES = 256 * 2**10
MODEL = "ModelNew"

_SLOTS = re.compile(r"^(?:[ \t]*#[ \t]*block:|INPUTS[ \t]*=)", re.MULTILINE)
_CODE_BEGINS = re.compile(r"^(?:import |from |class |def |@|\"\"\"|#)")
_OTHER_LANGUAGES = frozenset({"cpp", "c++", "c", "cuda", "cu", "rust", "javascript", "js", "java", "go", "bash", "sh"})
_MOST_STARTS = 20  # lines at which a file without fences may begin


def read_reply(reply: str, *, parent: str | None = None, truncated: bool = False) -> str:
    """Return the Candidate's source in a reply: a whole file, or edits of `parent`.

    Of several blocks the last complete Python module that defines `ModelNew` is taken. `truncated` says that the
    endpoint stopped at its token limit. Raises ReplyError with what to write instead.
    """
    text = without_thoughts(reply.replace("\r\n", "\n"))
    if not text.strip():
        raise _nothing_said(thought=bool(reply.strip()))
    if parent is None:
        return _whole_file(text, truncated=truncated)
    try:
        edits = find_edits(text)
        if edits:
            return checked(apply_edits(parent, edits))
    except ReplyError as error:
        try:
            return _whole_file(text, truncated=truncated)
        except ReplyError:
            raise error from None
    return _whole_file(text, truncated=truncated)


def slots_in(reply: str, *, truncated: bool = False) -> str | None:
    """Return the code that fills a block's slots in a reply, None if there is none: the last such block.

    Raises ReplyError if it is cut off, or there is nothing but thoughts.
    """
    text = without_thoughts(reply.replace("\r\n", "\n"))
    if not text.strip():
        raise _nothing_said(thought=bool(reply.strip()))
    found = [block for block in find_blocks(text) if _SLOTS.search(block.text)]
    if not found:
        return text if _SLOTS.search(text) and not find_blocks(text) else None
    if not found[-1].closed and (truncated or not _parses(found[-1].text)):
        raise ReplyError("the reply is cut off inside its slots: write shorter ones", Fault.CUT_OFF)
    return found[-1].text


def _parses(code: str) -> bool:
    try:
        parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def checked(source: str) -> str:
    """Return the source, if it is a Python module of acceptable size that defines ModelNew. Raises ReplyError."""
    source = source.removeprefix("\ufeff")
    size = len(source.encode(errors="surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise ReplyError(
            f"the file has {size} bytes; at most {MAX_SOURCE_BYTES} are taken: write a shorter one", Fault.TOO_LONG
        )
    try:
        source.encode()
        tree = parse(source)
    except SyntaxError as error:
        raise ReplyError(f"the file is not Python: line {error.lineno}: {error.msg}", Fault.NOT_PYTHON) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ReplyError(f"the file is not Python: {error}", Fault.NOT_PYTHON) from error
    if not any(_defines_model(statement) for statement in tree.body):
        raise ReplyError(f"the file defines no class {MODEL} at its top level")
    return source


def _defines_model(statement: ast.stmt) -> bool:
    """Return True for `class ModelNew` and `ModelNew = ...`."""
    if isinstance(statement, ast.ClassDef):
        return statement.name == MODEL
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == MODEL for target in targets)


def _nothing_said(*, thought: bool) -> ReplyError:
    if thought:
        return ReplyError("the reply holds thoughts and no answer", Fault.THOUGHTS_ONLY)
    return ReplyError("the reply is empty: answer with one fenced Python block that holds the whole file", Fault.EMPTY)


def _whole_file(text: str, *, truncated: bool) -> str:
    blocks = find_blocks(text, _is_module)
    modules = [block.text for block in blocks if block.closed and _is_module(block.text)]
    if modules:
        return checked(modules[-1])
    bare = None if blocks else _bare_module(text)
    if bare is not None:
        return checked(bare)
    return checked(_choose(blocks, truncated=truncated))


def _bare_module(text: str) -> str | None:
    """Return the module in a text without fences: all of it, a JSON field, or what prose surrounds."""
    if _is_module(text):
        return text
    found = _json_field(text)
    if found is not None:
        return found
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _CODE_BEGINS.match(line)]
    for start in starts[:_MOST_STARTS]:
        code = _up_to_prose(lines[start:])
        if code is not None:
            return code
    return None


def _json_field(text: str) -> str | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    values = fields.values() if isinstance(fields, dict) else ()
    return next((value for value in values if isinstance(value, str) and _is_module(value)), None)


def _up_to_prose(lines: list[str]) -> str | None:
    """Return these lines as a module, less those from the first one on that is no Python."""
    code = "\n".join(lines)
    if _is_module(code):
        return code
    try:
        parse(code)
    except SyntaxError as error:
        shorter = "\n".join(lines[: (error.lineno or 1) - 1]) + "\n"
        return shorter if _is_module(shorter) else None
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _choose(blocks: list[Block], *, truncated: bool) -> str:
    """Return the most likely block, although it is no valid module. Raises ReplyError if there is none."""
    if not blocks and truncated:
        raise ReplyError("the reply is cut off before its code: give the file at once", Fault.CUT_OFF)
    if not blocks:
        raise ReplyError("the reply has no code: answer with one fenced Python block that holds the whole file")
    last = blocks[-1]
    if not last.closed or truncated:
        lines = last.text.count("\n")
        raise ReplyError(
            f"the reply is cut off inside its code, after {lines} lines: write a shorter file", Fault.CUT_OFF
        )
    named = [block for block in blocks if f"class {MODEL}" in block.text]
    if named:
        return named[-1].text
    if all(block.language in _OTHER_LANGUAGES for block in blocks):
        raise ReplyError(
            f"the reply has {last.language} alone: put native code into a string of a Python module with class {MODEL}"
        )
    raise ReplyError(f"no code block defines class {MODEL}: answer with the whole Python file in one block")


def _is_module(text: str) -> bool:
    if MODEL not in text:
        return False
    try:
        checked(text)
    except ReplyError:
        return False
    return True
