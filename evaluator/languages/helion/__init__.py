"""Helion: tiles in Python that become Triton on a GPU; interpreted, untimed, on a CPU.

A kernel without a configuration would search for one at its first call, for minutes, on a device that others wait for.
So a text has to name one, and TUNABLES vary it between Candidates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from evaluator.languages.base import (
    BuildFacts,
    BuildTarget,
    LanguageAdapter,
    Objection,
    decorated_functions,
    imports,
    parsed,
    version,
)
from evaluator.languages.helion.names import ALLOWED
from evaluator.languages.helion.niche import NICHES
from evaluator.languages.helion.notes import NOTES
from evaluator.languages.triton import TritonAdapter
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language

_DECORATORS = ("kernel", "jit")
_SEARCHES = ("aot_kernel", "from_cache", "autotuner", "experimental")
_REMEDY = "give it one, config=helion.Config(...), with values from CONFIG, and let TUNABLES vary them"


class HelionAdapter(LanguageAdapter):
    """Candidates with `@helion.kernel` functions."""

    language = Language.HELION
    title = "Helion"
    guide = Path(__file__).with_name("guide.j2")
    notes = NOTES
    niches = NICHES
    allowed = ALLOWED
    compiles_on_import = True
    compiles_on_first_call = True
    builds_for_shapes = True
    keeps_first_calls = True  # what it generates, Triton compiles and keeps
    runtime_operation = TritonAdapter.runtime_operation
    own_preloaded = ("evaluator.child.triton_build.helion",)
    packages = ("helion", "triton")
    optional = ("helion",)
    names_elsewhere: ClassVar[Mapping[str, str]] = {"kernelbench": "triton", "sol": "triton"}

    def __init__(self) -> None:
        self._triton = TritonAdapter()

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return imports(names, "helion")

    def timed_on(self, kind: DeviceKind) -> bool:
        """Return true where kernels are compiled: the interpreter runs them as PyTorch operations."""
        return kind is DeviceKind.CUDA

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        """Turn the interpreter on for a CPU, and searches for a configuration off everywhere."""
        interpreted = {"HELION_INTERPRET": "1"} if kind is DeviceKind.CPU else {}
        return {**interpreted, "HELION_AUTOTUNE_EFFORT": "none", "HELION_AUTOTUNE_PROGRESS_BAR": "0"}

    def missing(self, kind: DeviceKind) -> str | None:
        """Return what is not here: the package, or one that goes with this torch."""
        lacking = super().missing(kind)
        if lacking is None and _release("helion") >= (1, 5) and _release("torch") < (2, 12):
            found = f"helion {version('helion')} does not import beside torch {version('torch')}"
            return f"{found} where kernels are judged: pip install 'helion<1.5'"
        return lacking

    def objection(self, tree: ast.Module) -> Objection | None:
        """Refuse kernels that would search for their configuration."""
        found = sorted(_objections(tree), key=lambda one: one.line or 0)
        return found[0] if found else None

    def build(self, child: ChildProcess, kind: DeviceKind, target: BuildTarget) -> BuildFacts:
        """Import the Candidate, and for a GPU compile its launches for the given shapes, as Triton's are."""
        return self._triton.build(child, kind, target)

    def gpu_kernels(self, source: str) -> frozenset[str]:
        """Return the names that Helion gives to the kernels of the functions that a module decorates."""
        tree = parsed(source)
        makers, decorated = _names(tree, _DECORATORS), decorated_functions(tree)
        return frozenset(f"_helion_{name}" for name, decorator in decorated if ast.unparse(decorator) in makers)


def _release(distribution: str) -> tuple[int, ...]:
    """Return the first two numbers of a package's version."""
    return tuple(int(number) for number in re.findall(r"\d+", version(distribution) or "")[:2])


def _names(tree: ast.Module, members: tuple[str, ...]) -> set[str]:
    """Return the expressions that name these members of Helion in a module: "helion.kernel", "kernel"."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.asname or "helion" for alias in node.names if alias.name.split(".")[0] == "helion"]
            found |= {f"{module}.{member}" for module in modules for member in members}
        elif isinstance(node, ast.ImportFrom) and node.module == "helion":
            found |= {alias.asname or alias.name for alias in node.names if alias.name in members}
    return found


def _objections(tree: ast.Module) -> Iterator[Objection]:
    makers, searches = _names(tree, _DECORATORS), _names(tree, _SEARCHES)
    complete = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _has_config(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = ast.unparse(node)
            if name in makers and isinstance(node.ctx, ast.Load) and id(node) not in complete:
                reason = f"line {node.lineno}: {name} without a fixed configuration tunes itself at its first call"
                yield Objection(f"{reason}: {_REMEDY}", node.lineno)
            elif name in searches or (isinstance(node, ast.Attribute) and _searches(node)):
                yield Objection(f"line {node.lineno}: {name} searches for a configuration: {_REMEDY}", node.lineno)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helion.autotuner"):
            reason = f"line {node.lineno}: helion.autotuner searches for a configuration"
            yield Objection(f"{reason}: {_REMEDY}", node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in makers:
            yield from _settings(node)


def _has_config(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    config = given.get("config")
    return config is not None and not (isinstance(config, ast.Constant) and config.value is None)


def _searches(node: ast.Attribute) -> bool:
    """Return true for `kernel.autotune`; Triton has a decorator of that name."""
    return node.attr in ("autotune", "autotune_multi") and ast.unparse(node.value) != "triton"


def _settings(call: ast.Call) -> Iterator[Objection]:
    for keyword in call.keywords:
        name = keyword.arg or ""
        if name == "configs" or name.startswith(("autotune", "force_autotune")):
            yield Objection(f"line {call.lineno}: {name} makes Helion search: {_REMEDY}", call.lineno)
