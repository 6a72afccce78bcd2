"""Triton: compiled by its own JIT on a GPU, interpreted (slowly, untimed) on a CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from contextlib import suppress

from evaluator.errors import ChildError
from evaluator.languages.base import BUILD_LIMIT_S, Ahead, BuildFacts, build_by_importing
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language

# The interpreter computes bf16 on raw 16-bit integers and gives wrong numbers without a word.
_NOT_INTERPRETED = {
    "bfloat16": "on a CPU Triton's interpreter computes bfloat16 wrong, without a word: judge it on a GPU, or on"
    " workloads of another dtype"
}


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

    def build(self, child: ChildProcess, kind: DeviceKind, ahead: Ahead) -> BuildFacts:
        """Import the Candidate, and for a GPU compile what it launches for the given shapes. What needs values, or
        fails, is left to the device: it is compiled at its first launch."""
        facts = build_by_importing(child, kind)
        if facts.error is None and ahead.capability:
            with suppress(ChildError):
                child.request(
                    "triton_ahead", timeout_s=BUILD_LIMIT_S, shapes=list(ahead.shapes), capability=ahead.capability
                )
        return facts


def kernel_names(source: str) -> frozenset[str]:
    """Names of the functions that a module decorates with triton.jit."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return frozenset(f.name for f in functions if any(_is_jit(decorator) for decorator in f.decorator_list))


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name == "jit"
