"""Many C++ Candidates in one library: a compiler run costs more than the kernels in it, so tests share one."""

from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unittest import mock

from synthesis.tuning import read_tunables
from tests.support import kept
from tests.synthesis.checking import warpwright_native

Key = tuple[str, tuple[tuple[str, Any], ...]]
GUARDED = "#if defined(__SSE__)\n#include <immintrin.h>\n#endif\n"


class Part:
    """One Candidate's kernels in the shared library, by their names in its source."""

    def __init__(self, library: ctypes.CDLL, prefix: str) -> None:
        self._library, self._prefix = library, prefix

    def __getattr__(self, name: str) -> Any:
        return self._library[self._prefix + name]


class Together:
    """Replaces load_cpp: Candidates that were compiled together come from their library, others are
    compiled as usual. Options come after the product's, so that they win."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = ("-ffp-contract=off", *options)
        self._load_cpp = warpwright_native.load_cpp
        self.parts: dict[Key, Part] = {}

    def __call__(self, source: str, *, defines: Mapping[str, Any], flags: Sequence[str] = ()) -> Any:
        part = self.parts.get(_key(source, defines))
        return part if part is not None else self.load_cpp(source, defines=defines, flags=flags)

    def load_cpp(self, *args: Any, **named: Any) -> ctypes.CDLL:
        """Compile, or load what an earlier run compiled."""
        with mock.patch.dict("os.environ", WARPWRIGHT_NATIVE_CACHE=str(kept.native())):
            return self._load_cpp(*args, **named)

    def compile(self, candidates: Iterable[str]) -> None:
        """Compile the kernels of these Candidates, each in a namespace of its own with its own CONFIG.

        Where the compiler refuses, nothing is kept: each is then compiled alone, and the faulty one fails its test.
        """
        wanted = {_key(source, config): (source, config) for source, config in map(_native, dict.fromkeys(candidates))}
        includes: set[str] = set()
        bodies = []
        for number, (source, config) in enumerate(wanted.values()):
            includes |= set(re.findall(r"^#include .*$", source, re.MULTILINE))
            body = re.sub(r"^#include .*$", "", source, flags=re.MULTILINE)
            body = body.replace('extern "C" void ', f'extern "C" void part_{number}_')
            macros = "".join(f"#undef {name}\n#define {name} {value}\n" for name, value in config.items())
            bodies.append(f"{macros}namespace part_{number} {{\n{body}\n}}\n")
        head = "\n".join(sorted(i for i in includes if "immintrin" not in i))
        try:
            library = self.load_cpp(f"{GUARDED}{head}\n" + "\n".join(bodies), flags=self._options)
        except warpwright_native.CompileError:
            return
        self.parts |= {key: Part(library, f"part_{number}_") for number, key in enumerate(wanted)}


def _native(candidate: str) -> tuple[str, dict[str, Any]]:
    """Return the SOURCE and the CONFIG of a C++ Candidate."""
    for node in ast.parse(candidate).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SOURCE":
            return ast.literal_eval(node.value), read_tunables(candidate)[1]
    raise ValueError("the Candidate has no SOURCE")


def _key(source: str, defines: Mapping[str, Any]) -> Key:
    return source, tuple(sorted(defines.items()))
