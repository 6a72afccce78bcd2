"""Triton: compiled by its own JIT on a GPU, interpreted (slowly, untimed) on a CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from evaluator.languages.base import BuildFacts, build_by_importing
from evaluator.process import ChildProcess
from evaluator.types import DeviceKind, Language

# The interpreter computes bf16 on raw 16-bit integers and gives wrong numbers without a word.
_NOT_INTERPRETED = {"bfloat16": "bf16 arithmetic is silently wrong in Triton's interpreter"}


class TritonAdapter:
    """Candidates with `@triton.jit` kernels."""

    language = Language.TRITON

    def timed_on(self, kind: DeviceKind) -> bool:
        """Only where the kernels are compiled: the interpreter's time (about 1 ms per program) means nothing."""
        return kind is DeviceKind.CUDA

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        """On a CPU the interpreter, on before Triton is imported, since its own library functions are jitted too."""
        return {"TRITON_INTERPRET": "1"} if kind is DeviceKind.CPU else {}

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        """Why a Workload with these dtypes cannot be judged on this device, or None."""
        if kind is not DeviceKind.CPU:
            return None
        return next((_NOT_INTERPRETED[name] for name in dtypes if name in _NOT_INTERPRETED), None)

    def build(self, child: ChildProcess, kind: DeviceKind) -> BuildFacts:
        """Import the Candidate. Kernels are compiled at their first launch, so most of the building is the device's."""
        del kind
        return build_by_importing(child)


def has_kernels(source: str) -> bool:
    """Whether a module defines a function decorated with triton.jit, possibly under autotune or heuristics."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        isinstance(node, ast.FunctionDef) and any(_is_jit(decorator) for decorator in node.decorator_list)
        for node in ast.walk(tree)
    )


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name == "jit"
