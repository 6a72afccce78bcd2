"""Triton: compiled by its own JIT on a GPU, interpreted (slowly, untimed) on a CPU."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from evaluator.errors import ChildError
from evaluator.languages.allowed import AllowedNames
from evaluator.languages.base import (
    BUILD_LIMIT_S,
    BuildFacts,
    BuildTarget,
    LanguageAdapter,
    decorated_functions,
    imports,
    parsed,
)
from evaluator.languages.triton.niche import NICHES
from evaluator.languages.triton.notes import NOTES
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language

# The interpreter computes bf16 on raw 16-bit integers, and gives wrong numbers silently.
_NOT_INTERPRETED = {
    "bfloat16": "on a CPU Triton's interpreter computes bfloat16 wrong, without a word: judge it on a GPU, or on"
    " workloads of another dtype"
}


class TritonAdapter(LanguageAdapter):
    """Candidates with `@triton.jit` kernels."""

    language = Language.TRITON
    title = "Triton"
    guide = Path(__file__).with_name("guide.j2")
    notes = NOTES
    niches = NICHES
    allowed = AllowedNames(
        modules={"triton": "triton", "triton.language": "tl"},
        members={
            ("triton", "language"): "tl",
            ("triton.language.extra", "libdevice"): "tl",
            ("triton.tools.tensor_descriptor", "TensorDescriptor"): "descriptor",
        },
        attributes={
            "triton": frozenset(("jit", "autotune", "heuristics", "Config", "cdiv", "next_power_of_2")),
            "descriptor": frozenset(("from_tensor",)),
            "tl.extra.cuda": frozenset(("gdc_wait", "gdc_launch_dependents")),
        },
        open=frozenset(("tl",)),
        submodules={("tl", "math"): "math", ("tl", "extra"): "tl.extra", ("tl.extra", "cuda"): "tl.extra.cuda"},
        values=frozenset(("load", "store", "gather", "scatter")),  # of descriptors, in kernels
        settable=("triton.knobs",),
    )
    compiles_on_import = True
    compiles_on_first_call = True
    builds_for_shapes = True
    keeps_first_calls = True
    runtime_operation = "triton_runtime"
    packages = ("triton",)
    names_elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(("kernelbench", "flashinfer", "sol"), "triton")
    preloaded = ("evaluator.child.triton_build.warm",) if importlib.util.find_spec("triton") else ()

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return imports(names, "triton")

    def timed_on(self, kind: DeviceKind) -> bool:
        """Return true where the kernels are compiled: the interpreter's time (about 1 ms per program) means nothing."""
        return kind is DeviceKind.CUDA

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        """Turn the interpreter on for a CPU, before Triton is imported: its own library functions are jitted too."""
        return {"TRITON_INTERPRET": "1"} if kind is DeviceKind.CPU else {}

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        if kind is not DeviceKind.CPU:
            return None
        return next((_NOT_INTERPRETED[name] for name in dtypes if name in _NOT_INTERPRETED), None)

    def build(self, child: ChildProcess, kind: DeviceKind, target: BuildTarget) -> BuildFacts:
        """Import the Candidate, and for a GPU compile its launches for the given shapes. Launches that need values, or
        fail, are left to the device: they are compiled when they first run. A compiler's error is told as
        `compile_error`: a Candidate may catch it and do something else."""
        facts = super().build(child, kind, target)
        if facts.error is None and target.capability:
            with suppress(ChildError):
                ahead = child.request(
                    "triton_ahead", timeout_s=BUILD_LIMIT_S, shapes=list(target.shapes), capability=target.capability
                )
                if error := str(ahead.get("error") or ""):
                    facts = replace(facts, resources={**facts.resources, "compile_error": error})
        return facts

    def gpu_kernels(self, source: str) -> frozenset[str]:
        """Return the names of the functions that a module decorates with triton.jit."""
        return frozenset(name for name, decorator in decorated_functions(parsed(source)) if _is_jit(decorator))


def _is_jit(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name == "jit"
