"""The kernel alone as a module that needs nothing of ours, for projects that check and time it themselves."""

from __future__ import annotations

import ast

from evaluator.syntax import parse
from evaluator.types import Language
from service.exports.base import Export, Unsupported
from service.exports.parts.embed import literal, raw_literal
from service.exports.parts.native import helper
from service.exports.parts.verified import tensor_shapes
from service.exports.python_file import hoist_future

_NATIVE = """# The compile helper that the kernel imports.
import sys as _ww_sys

_ww_native = type(_ww_sys)("warpwright_native")
exec({text}, vars(_ww_native))
_ww_known = _ww_sys.modules.setdefault("warpwright_native", _ww_native)
vars(_ww_known).update({{**vars(_ww_native), **vars(_ww_known)}})  # another kernel's gets what it has not
"""
_CALLING = '''
import torch as _ww_torch

# The constructor's arguments by the shapes of the tensors, as they were verified.
_ww_arguments = {arguments}
_ww_default = {default}  # for all other shapes; None where the workloads differ
_ww_built = {{}}


def _ww_model(tensors, arguments=None):
    """Return the kernel's module: built once for its arguments and device."""
    if arguments is None:
        shapes = [list(one.shape) for one in tensors]
        arguments = next((given for known, given in _ww_arguments if known == shapes), _ww_default)
    if arguments is None:
        raise ValueError(f"no workload has the shapes {{shapes}}: the constructor's arguments are not known")
    device = tensors[0].device
    key = f"{{arguments}} {{device}}"
    if key not in _ww_built:
        _ww_built[key] = {kind}(*arguments).to(device).train({train})
    return _ww_built[key]
'''
_WEIGHTS = '''

def _ww_loaded(model, names, weights):
    """Return the module with these weights, by name, else in their order."""
    own = {{**dict(model.named_parameters()), **dict(model.named_buffers())}}
    for mine, given in zip([own[name] for name in names] if set(names) <= set(own) else own.values(), weights):
        if mine.data_ptr() != given.data_ptr():
            mine.data = given
    return model
'''


def require_gpu(export: Export, project: str) -> None:
    """Raise Unsupported for a kernel in C++ for the CPU."""
    if export.candidate.language is Language.CPP:
        raise Unsupported(
            f"{project} runs kernels on GPUs, and this one is C++ for a CPU: optimise the problem with --device cuda"
        )


def kernel_module(export: Export, *, taken: str) -> tuple[str, str]:
    """Return its `from __future__` lines and the module's text. Raise Unsupported if it binds the name `taken`."""
    source, future = hoist_future(export.candidate.source)
    if taken in _bound(source):
        raise Unsupported(f"the kernel defines {taken} itself, the name that this format needs: rename it there")
    native = helper(source)
    return future, (_NATIVE.format(text=raw_literal(native)) + "\n\n" if native else "") + source.strip() + "\n"


def calling(export: Export, *, kind: str = "ModelNew", weights: bool = False, given: bool = False) -> str:
    """Return functions that build a module of the class `kind` and give it weights. Raise Unsupported.

    With `given`, every call hands the constructor's arguments over, and shapes need not tell them.
    """
    known = {} if given else _constructors(export)
    table = "[\n" + "".join(f"    ({shapes}, {text}),\n" for shapes, text in known.items()) + "]"
    texts = set(known.values()) or {"[]"}
    default = texts.pop() if len(texts) == 1 else "None"
    return _CALLING.format(kind=kind, arguments=table, default=default, train=export.problem.train) + (
        _WEIGHTS.format() if weights else ""
    )


def _constructors(export: Export) -> dict[str, str]:
    """Return the constructor's arguments by the tensors' shapes, both as Python. Raise Unsupported."""
    known: dict[str, str] = {}
    for fact in export.facts:
        constructor = "[]" if fact.constructor is None else literal(fact.constructor)
        if "..." in constructor:
            raise Unsupported(
                "the constructor takes tensors, which this format cannot carry: make them inputs of forward"
            )
        if known.setdefault(repr(tensor_shapes(fact)), constructor) != constructor:
            raise Unsupported(
                f"the workload {fact.workload!r} has the shapes of another one and other arguments of the constructor, "
                "and this format tells workloads by shapes alone: give it shapes of its own"
            )
    return known


def _bound(source: str) -> set[str]:
    try:
        body = parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    nodes = [one for node in body for one in ([node] if isinstance(node, ast.FunctionDef) else ast.walk(node))]
    stored = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return stored | {one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
