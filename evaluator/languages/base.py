"""Languages that a Candidate can be written in: what tells them apart, and what each knows before a device is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evaluator.errors import ChildError
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language

BUILD_LIMIT_S = 120.0
_SURE = ("CompileError", "SyntaxError", "IndentationError")  # fail wherever they are built


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """What building without a device found. `error` set: it does not build; `line` is in the Candidate's own file.

    `resources` are registers, spills, shared memory and the like; `launches` hashes what would run, where known.
    """

    resources: Mapping[str, Any] = field(default_factory=dict)
    launches: str | None = None
    error: str | None = None
    line: int | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What kernels are compiled for before they run: layouts of a module's arguments and inputs (`Session.shapes`), one
    for each set of sizes, and the device's compute capability (90 for 9.0; 0 where it has none)."""

    shapes: Sequence[Mapping[str, Any]] = ()
    capability: int = 0


class LanguageAdapter(Protocol):
    """One language. Adapters judge from source text and from what a caged child says; they never run a Candidate."""

    language: Language

    def timed_on(self, kind: DeviceKind) -> bool:
        """Whether a time on this device means anything (Triton's interpreter on a CPU: no)."""

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        """Variables that a child of this language needs on this device, set before it imports anything."""

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        """Why Candidates in this language cannot be judged on this device with such Workloads, or None."""

    def build(self, child: ChildProcess, kind: DeviceKind, ahead: Ahead) -> BuildFacts:
        """What is compiled, without a device: `child` is fresh, caged, and has the source at /job/candidate.py."""


def build_by_importing(child: ChildProcess, kind: DeviceKind) -> BuildFacts:
    """Import the Candidate in its child, which compiles what it compiles at import. A GPU is not shown while it is
    built for: what fails for want of one is left to the device, and so is this machine's lack of a compiler."""
    try:
        found = child.request("build_imports", timeout_s=BUILD_LIMIT_S)
    except ChildError as error:
        if error.kind == "CompilerMissing" or (kind is DeviceKind.CUDA and error.kind not in _SURE):
            return BuildFacts(log=error.message)
        text = error.message if error.kind == "CompileError" else error.trace
        return BuildFacts(error=str(error), line=line_in_candidate(text), log=error.message or error.trace)
    return BuildFacts(resources={"kernels": found.get("kernels", [])})


def line_in_candidate(text: str) -> int | None:
    """The last line of the Candidate's own file in a trace or a compiler's message."""
    lines = re.findall(r"^(?:/\S*/)?candidate\.py:(\d+)", text, re.MULTILINE)
    return int(lines[-1]) if lines else None


def line_at_end(output: str) -> int | None:
    """Where the Candidate's own file was when its process ended, as faulthandler prints it: innermost first."""
    _, _, words = output.rpartition("(most recent call first):")
    found = re.search(r'^ *File "/\S*/candidate\.py", line (\d+)', words, re.MULTILINE)
    return int(found[1]) if found else None


def used_names(source: str) -> frozenset[str]:
    """Dotted names of everything that a module imports, anywhere in it; empty where it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    return frozenset(names)
