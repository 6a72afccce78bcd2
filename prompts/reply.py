"""Parse a reply: find the one source among reasoning, prose, fences and edits, or explain why there is none."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from evaluator.syntax import parse
from evolution.plans import without_thoughts
from evolution.types import Fault
from prompts.blocks import Block, find_blocks
from prompts.edits import apply_edits, find_edits
from prompts.errors import ReplyError

MAX_SOURCE_BYTES = 256 * 2**10
MODEL = "ModelNew"
_BOM = "\ufeff"

_SLOTS = re.compile(r"^(?:[ \t]*#[ \t]*block:|INPUTS[ \t]*=)", re.MULTILINE)
_CODE_BEGINS = re.compile(r"^(?:import |from |class |def |@|\"\"\"|#)")
_OTHER_LANGUAGES = frozenset({"cpp", "c++", "c", "cuda", "cu", "rust", "javascript", "js", "java", "go", "bash", "sh"})
_TAG = re.compile(r"<(?=/?think(?:ing)?>)")
_HIDDEN = "\ue000"  # stands for the "<" of a tag that is no tag
_FINAL = "<|channel|>final<|message|>"
_QUOTED = re.compile(r"^> ?(?=(?:`{3,}|~{3,}|<{4,9}))", re.MULTILINE)
_QUOTE = re.compile(r"^> ?", re.MULTILINE)
_INDENTATION = re.compile(r"^(?: {4}|\t)", re.MULTILINE)
_MOST_STARTS = 20  # lines at which a file without fences may begin


def read_reply(reply: str, *, parent: str | None = None, truncated: bool = False) -> str:
    """Return the Candidate's source in a reply: a whole file, or edits of `parent`.

    Of several blocks the last complete Python module that defines `ModelNew` is taken. `truncated` says that the
    endpoint stopped at its token limit. Raises ReplyError with what to write instead.
    """
    text = _answer(reply)
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
    text = _answer(reply)
    if not text.strip():
        raise _nothing_said(thought=bool(reply.strip()))
    found = [block for block in find_blocks(text) if _SLOTS.search(block.text)]
    if not found:
        return text if _SLOTS.search(text) and not find_blocks(text) else None
    if not found[-1].closed and (truncated or not _parses(found[-1].text)):
        raise ReplyError("the reply is cut off inside its slots: write shorter ones", Fault.CUT_OFF)
    return found[-1].text


def _answer(reply: str) -> str:
    """Return a reply without thoughts and Markdown's marks of a quotation. Tags inside a module's code are no tags."""
    text = reply.replace("\r\n", "\n").replace("\r", "\n").rpartition(_FINAL)[2]
    if _QUOTED.search(text):
        text = _QUOTE.sub("", text)
    for block in find_blocks(text, _is_module) if _TAG.search(text) else ():
        if block.closed and _TAG.search(block.text) and _is_module(block.text):
            text = text.replace(block.text, _TAG.sub(_HIDDEN, block.text))
    return without_thoughts(text).replace(_HIDDEN, "<")


def _parses(code: str) -> bool:
    try:
        parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def checked(source: str) -> str:
    """Return the source, if it is a Python module of acceptable size that defines ModelNew. Raises ReplyError."""
    source = source.removeprefix(_BOM)
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


def _defines_model(statement: ast.stmt | ast.ExceptHandler) -> bool:
    """Return True for `class ModelNew` and `ModelNew = ...`, also inside `if`, `try` and `with`."""
    match statement:
        case ast.ClassDef(name=name):
            return name == MODEL
        case ast.Assign(targets=targets):
            return any(_names_model(target) for target in targets)
        case ast.AnnAssign(target=target):
            return _names_model(target)
        case ast.If() | ast.Try() | ast.With():
            inner = (ast.stmt, ast.ExceptHandler)
            return any(_defines_model(one) for one in ast.iter_child_nodes(statement) if isinstance(one, inner))
        case ast.ExceptHandler(body=body):
            return any(map(_defines_model, body))
    return False


def _names_model(target: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == MODEL for node in ast.walk(target))


def _nothing_said(*, thought: bool) -> ReplyError:
    if thought:
        return ReplyError("the reply holds thoughts and no answer", Fault.THOUGHTS_ONLY)
    return ReplyError("the reply is empty: answer with one fenced Python block that holds the whole file", Fault.EMPTY)


def _whole_file(text: str, *, truncated: bool) -> str:
    blocks = find_blocks(text, _is_module)
    module = _last_module(blocks)
    if module is None:
        module = _json_module(text) if blocks else _bare_module(text)
    if module is not None:
        return checked(module)
    return checked(_choose(blocks, truncated=truncated))


def _last_module(blocks: list[Block]) -> str | None:
    """Return the last block that is a module: one with a class, since an example of use may set the name, too."""
    modules = [block.text.removeprefix(_BOM) for block in blocks if block.closed and _is_module(block.text)]
    with_class = [text for text in modules if any(isinstance(one, ast.ClassDef) for one in ast.walk(parse(text)))]
    return next(reversed(with_class or modules), None)


def _bare_module(text: str) -> str | None:
    """Return the module in a text without fences: all of it, a JSON field, or what prose surrounds."""
    if _is_module(text):
        return text
    found = _json_module(text)
    if found is not None:
        return found
    for code in (text, _INDENTATION.sub("", text)):
        lines = code.split("\n")
        starts = [number for number, line in enumerate(lines) if _CODE_BEGINS.match(line)]
        found = next(filter(None, (_up_to_prose(lines[start:]) for start in starts[:_MOST_STARTS])), None)
        if found is not None:
            return found
    return None


def _json_module(text: str) -> str | None:
    """Return the module that is a text inside JSON, in fences or not."""
    try:
        found = json.loads(text[text.find("{") : text.rfind("}") + 1], strict=False)
    except (ValueError, RecursionError):
        return None
    for value in _strings(found):
        module = value if _is_module(value) else _last_module(find_blocks(value, _is_module))
        if module is not None:
            return module
    return None


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(one)


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
    if last.language in ("diff", "patch"):
        raise ReplyError(
            "the reply is a diff, which is not read: answer with one Python block that holds the whole file"
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
