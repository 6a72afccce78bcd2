"""The heart of what torch.compile generated in a child: its kernels, without wrappers and launch settings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluator.child.protocol.framing import Operation

MOST_CHARACTERS = 8000
_KERNEL = re.compile(r"async_compile\.\w+\((?:[^\']|\'(?!\'\'))*(?:\'\'\'|r\'\'\')(.*?)\'\'\'", re.DOTALL)
_CALL = re.compile(r"^ *def call\(.*?(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
_NOISE = re.compile(r"^\s*(?:#.*|assert_size_stride\(.*|del .*|import .*|from .*|#include .*|\s*)$")


def generated(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Return {"code": the newest generated program's kernels}, "" if nothing was compiled here."""
    del request, fds
    programs = [text for text in _modules() if "def call(" in text]
    return {"code": heart(programs[-1])[:MOST_CHARACTERS] if programs else ""}


def heart(program: str) -> str:
    """Return the kernels of a generated program and its calls, without what says nothing about the algorithm."""
    kernels = [_body(found[1]) for found in _KERNEL.finditer(program)]
    calls = _CALL.search(program)
    return "\n\n".join([*dict.fromkeys(kernels), *([_terse(calls[0])] if calls is not None else [])])


def _body(source: str) -> str:
    """Return a kernel's source from its decorator or signature on."""
    for mark in ("@triton.jit", 'extern "C"'):
        if mark in source:
            return _terse(source[source.index(mark) :])
    return _terse(source)


def _terse(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n") if not _NOISE.match(line))


def _modules() -> Iterator[str]:
    """Yield the texts of the programs that Inductor has loaded in this process, in order."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    for module in getattr(cache, "modules", ()):
        try:
            yield Path(str(module.__file__)).read_text(encoding="utf-8")
        except (OSError, AttributeError, UnicodeDecodeError):
            continue


OPS: dict[str, Operation] = {"generated": generated}
