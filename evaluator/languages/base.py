"""The interface of a language adapter, and the helpers that adapters share."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from evaluator.cage.bwrap import interpreter
from evaluator.errors import ChildError
from evaluator.languages.allowed import AllowedNames
from evaluator.languages.niche import Niche, NicheRules
from evaluator.languages.notes import Note
from evaluator.sandbox.process import ChildProcess
from evaluator.syntax import parse
from evaluator.types import DeviceKind, Language

BUILD_LIMIT_S = 120.0
_SURE = ("CompileError", "SyntaxError", "IndentationError")  # fail wherever they are built


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """The result of building without a device. `error` says why it does not build; `line` is in the Candidate's file.

    `resources` are registers, spills, shared memory and the like; `launches` hashes the compiled launches, if known.
    """

    resources: Mapping[str, Any] = field(default_factory=dict)
    launches: str | None = None
    error: str | None = None
    line: int | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """The target that kernels are compiled for before they run: layouts of a module's arguments and inputs
    (`Session.shapes`), one for each set of sizes, and the device's compute capability (90 for 9.0; 0 for none)."""

    shapes: Sequence[Mapping[str, Any]] = ()
    capability: int = 0


@dataclass(frozen=True, slots=True)
class Objection:
    """The reason why a text in a language cannot be a Candidate, and its line."""

    reason: str
    line: int | None = None


class LanguageAdapter(ABC):
    """Everything about one language that is said outside the cage. It reads source text, and it asks a caged child; it
    never runs a Candidate itself.
    """

    language: Language
    title: str
    """The language's name in a prompt."""
    guide: Path
    """The part of a prompt that shows how to write it: a Jinja template with `brief` and `general`."""
    notes: tuple[Note, ...] = ()
    niches: NicheRules
    allowed: AllowedNames = AllowedNames()
    """Names of its own modules that screening allows."""
    compiles_on_import: bool = False
    compiles_on_first_call: bool = False
    keeps_first_calls: bool = False
    """The first calls compile files that a later child of the same Candidate can use."""
    builds_for_shapes: bool = False
    """Where the device has a compute capability, `build` is given the layouts of inputs."""
    runtime_operation: str | None = None
    """The child's operation that compiles the language's own runtime for a GPU, once for all Candidates."""
    preloaded: tuple[str, ...] = ()
    """Modules that a GPU's fork server imports before it starts children."""
    own_preloaded: tuple[str, ...] = ()
    """Slow modules that only this language's children need: their fork server imports them, where `child_environment`
    gives them one of their own and no GPU is shown to it."""
    packages: tuple[str, ...] = ()
    """The packages that a kernel needs besides torch, as pip names them."""
    optional: tuple[str, ...] = ()
    """The distributions that the extra `.[NAME]` of pyproject.toml installs, without which it is not offered."""
    names_elsewhere: ClassVar[Mapping[str, str]] = {}
    """Its name in other projects, by export format. Without one it is Python there."""

    @abstractmethod
    def recognises(self, source: str, names: frozenset[str]) -> bool:
        """Return true for a source in this language. `names` are the dotted names of everything that it imports."""

    @abstractmethod
    def timed_on(self, kind: DeviceKind) -> bool:
        """Return true if a time on this device means anything. (Triton's interpreter on a CPU: no.)"""

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        """Return the variables that a child of this language needs on this device, set before it imports anything."""
        return {}

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        """Return the reason why Workloads with such dtypes cannot be judged on this device, or None."""
        return None

    def missing(self, kind: DeviceKind) -> str | None:
        """Return what this machine lacks to judge the language on such a device, and the remedy. None if nothing."""
        del kind
        absent = [name for name in self.optional if version(name) is None]
        if not absent:
            return next((why for name in self.optional if (why := hidden_in_cages(name))), None)
        return f"{' and '.join(absent)} is not installed where kernels are judged: {self.install}"

    @property
    def install(self) -> str:
        """The command that installs the optional packages, in a checkout."""
        return f"pip install -c constraints.txt -e '.[{self.language.value}]'"

    def objection(self, tree: ast.Module) -> Objection | None:
        """Return why a parsed text in this language cannot be a Candidate, or None."""
        del tree
        return None

    def build(self, child: ChildProcess, kind: DeviceKind, target: BuildTarget) -> BuildFacts:
        """Compile without a device. `child` is fresh, caged, and has the source at /job/candidate.py."""
        del target
        return build_by_importing(child, kind)

    def niche(self, source: str) -> Niche:
        """Return the niche of a source in this language."""
        return self.niches.niche(source)

    def gpu_kernels(self, source: str) -> frozenset[str]:
        """Return the names of the GPU kernels that a source writes out in this language."""
        return frozenset()


def build_by_importing(child: ChildProcess, kind: DeviceKind) -> BuildFacts:
    """Import the Candidate in its child, which runs its compilers. No GPU is shown to it: failures for want of one are
    left to the device, and so is this machine's lack of a compiler."""
    try:
        found = child.request("build_imports", timeout_s=BUILD_LIMIT_S)
    except ChildError as error:
        if error.kind == "CompilerMissing" or (kind is DeviceKind.CUDA and error.kind not in _SURE):
            return BuildFacts(log=error.message)
        text = error.message if error.kind == "CompileError" else error.trace
        return BuildFacts(error=str(error), line=line_in_candidate(text), log=error.message or error.trace)
    return BuildFacts(resources={"kernels": found.get("kernels", [])})


def imports(names: frozenset[str], module: str) -> bool:
    """Return true if one of the dotted names that a source imports is `module` or lies in it."""
    return any(name == module or name.startswith(f"{module}.") for name in names)


def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a source, an empty one for a text that does not parse."""
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def decorated_functions(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, decorator without its arguments) for each decorator of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                yield node.name, decorator.func if isinstance(decorator, ast.Call) else decorator


def version(distribution: str) -> str | None:
    """Return the version of an installed package, read without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def hidden_in_cages(distribution: str) -> str | None:
    """Return why kernels do not see an installed package, and the remedy. None if they do.

    Cages show the folder of packages that torch lies in and those of Python itself, and no other of the search path.
    """
    folder = os.path.realpath(str(importlib.metadata.distribution(distribution).locate_file("")))
    shown = interpreter().site_packages
    if folder in shown:
        return None
    return f"{distribution} lies in {folder}, which kernels do not see: install it into {shown[0]}"


def line_in_candidate(text: str) -> int | None:
    """Return the last line of the Candidate's own file that a trace or a compiler's message names."""
    lines = re.findall(r"^(?:/\S*/)?candidate\.py:(\d+)", text, re.MULTILINE)
    return int(lines[-1]) if lines else None


def line_at_end(output: str) -> int | None:
    """Return the line of the Candidate's file at which its process ended; faulthandler prints the innermost first."""
    _, _, words = output.rpartition("(most recent call first):")
    found = re.search(r'^ *File "/\S*/candidate\.py", line (\d+)', words, re.MULTILINE)
    return int(found[1]) if found else None


def used_names(source: str) -> frozenset[str]:
    """Return the dotted names of everything that a module imports, anywhere in it; nothing if it does not parse."""
    names: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    return frozenset(names)
