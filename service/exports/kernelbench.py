"""KernelBench: the file with ModelNew under the name that its evaluation looks for, in a folder for its `runs`."""

from __future__ import annotations

import ast

from evaluator.languages import adapter
from evaluator.syntax import parse
from service.exports.base import Export, Format
from service.exports.parts.embed import raw_literal
from service.exports.parts.files import archive
from service.exports.parts.header import header
from service.exports.parts.native import renamed
from service.exports.parts.origin import origin
from service.exports.parts.standalone import kernel_module, require_gpu

RUN = "warpwright"
_WEIGHTS = """

# KernelBench draws weights by constructing both modules under one seed: those of the reference are taken here, since
# the kernel's constructor draws them in another order.
import sys as _ww_sys

import torch as _ww_torch

_ww_reference = _ww_sys.modules["ww_reference"] = type(_ww_sys)("ww_reference")
exec({reference}, vars(_ww_reference))
UnguardedModelNew = ModelNew


class ModelNew(UnguardedModelNew):
    def __init__(self, *arguments):
        given = _ww_reference.Model(*arguments)
        given = {{**dict(given.named_parameters()), **dict(given.named_buffers())}}
        with _ww_torch.random.fork_rng():
            super().__init__(*arguments)
        own = {{**dict(self.named_parameters()), **dict(self.named_buffers())}}
        with _ww_torch.no_grad():
            for name, mine, weight in zip(own, own.values(), given.values()):
                mine.copy_(given[name] if set(own) == set(given) else weight)
"""


def build(export: Export) -> bytes:
    """Return a zip with `level_L_problem_N_sample_0_kernel.py`. Raise Unsupported."""
    require_gpu(export, "KernelBench")
    told = origin(export.problem.source, "kernelbench")
    level, number = (told.get(key) if type(told.get(key)) is int else 0 for key in ("level", "id"))
    future, text = kernel_module(export, taken="UnguardedModelNew")
    if not _same_weights(export):
        text = renamed(text) + _WEIGHTS.format(reference=raw_literal(export.problem.source))
    backend = adapter(export.candidate.language).names_elsewhere.get("kernelbench", "cuda")
    where = f"level {level}, problem {number}" if told else "not a problem of KernelBench: rename the file"
    about = f'"""{header(export, alone=True)}\nKernelBench: {where}; backend {backend}.\n"""\n\n'
    return archive(RUN, {f"level_{level}_problem_{number}_sample_0_kernel.py": about + future + text})


def _same_weights(export: Export) -> bool:
    """Return whether the kernel's constructor draws the reference's weights: it has none, or its code is the same."""
    if export.facts and not any(fact.weights for fact in export.facts):
        return True
    mine, theirs = _constructor(export.candidate.source, "ModelNew"), _constructor(export.problem.source, "Model")
    return mine is not None and mine == theirs


def _constructor(source: str, name: str) -> str | None:
    try:
        body = parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                    return "\n".join(ast.unparse(line) for line in one.body).replace(f"super({name}, ", "super(, ")
    return None


FORMAT = Format(
    about="KernelBench's form: level_L_problem_N_sample_0_kernel.py with ModelNew, as a zip to unpack into its runs.",
    media_type="application/zip",
    extension="kernelbench.zip",
    build=build,
)
