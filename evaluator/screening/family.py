"""The family of a reference's operation, read from its text, for leaderboards. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum

from evaluator.syntax import parse


class Family(StrEnum):
    """Kinds of operations. A reference with several belongs to the first that fits."""

    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    MATMUL = "matmul"
    LOSS = "loss"
    SOFTMAX = "softmax"
    NORMALISATION = "normalisation"
    POOLING = "pooling"
    SCAN = "scan"
    REDUCTION = "reduction"
    INDEXING = "indexing"
    ACTIVATION = "activation"
    ELEMENTWISE = "elementwise"
    LAYOUT = "layout"
    OTHER = "other"


_INPUTS = frozenset({"get_inputs", "get_init_inputs", "make_inputs"})
_OPERATORS = "operators"
"""The name of arithmetic that is written with operators."""

_PRODUCTS = frozenset({
    "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "einsum", "tensordot", "linear", "bilinear",
})  # fmt: skip
_SOFTMAX = frozenset({"softmax", "logsoftmax", "softmin", "logsumexp"})
_LOSSES = frozenset({"crossentropy", "kldiv", "binarycrossentropy"})
_NORMS = frozenset({"layernorm", "rmsnorm", "groupnorm", "batchnorm", "instancenorm", "localresponsenorm", "normalize"})
_SCANS = frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "argsort", "topk", "unique"})
_REDUCTIONS = frozenset({
    "sum", "mean", "amax", "amin", "argmax", "argmin", "max", "min", "norm", "vectornorm", "var", "std", "varmean",
    "prod", "any", "all", "countnonzero", "median",
})  # fmt: skip
_INDEXING = frozenset({
    "gather", "scatter", "scatteradd", "scatterreduce", "indexselect", "indexadd", "indexcopy", "indexput", "embedding",
    "embeddingbag", "take", "takealongdim", "bincount",
})  # fmt: skip
_ACTIVATIONS = frozenset({
    "relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "softplus", "mish", "elu", "selu", "celu", "leakyrelu", "prelu",
    "hardswish", "hardsigmoid", "hardtanh", "glu", "softsign", "logsigmoid",
})  # fmt: skip
_ELEMENTWISE = frozenset({
    "add", "sub", "mul", "div", "addcmul", "addcdiv", "lerp", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "pow",
    "square", "abs", "neg", "sign", "sin", "cos", "clamp", "where", "maskedfill", "maximum", "minimum", "erf", "floor",
    "ceil", "round", "reciprocal",
})  # fmt: skip
_LAYOUT = frozenset({
    "cat", "stack", "transpose", "permute", "contiguous", "flip", "roll", "pad", "tril", "triu", "repeatinterleave",
    "repeat", "unfold", "fold", "chunk", "split", "pixelshuffle",
})  # fmt: skip


def _has(names: frozenset[str]) -> Callable[[Counter[str]], bool]:
    return lambda used: not names.isdisjoint(used)


def _is_attention(used: Counter[str]) -> bool:
    products = sum(used[name] for name in _PRODUCTS)
    whole = {"scaleddotproductattention", "multiheadattention", "multiheadattentionforward"}
    return not whole.isdisjoint(used) or (products >= 2 and not _SOFTMAX.isdisjoint(used))


def _is_loss(used: Counter[str]) -> bool:
    named = any(name in _LOSSES or name.endswith("loss") for name in used)
    return named or ("logsoftmax" in used and "gather" in used)


def _is_norm(used: Counter[str]) -> bool:
    return not _NORMS.isdisjoint(used) or ("rsqrt" in used and not {"mean", "sum", "var", "varmean"}.isdisjoint(used))


_RULES: tuple[tuple[Family, Callable[[Counter[str]], bool]], ...] = (
    (Family.CONVOLUTION, _has(frozenset({"conv", "convtranspose"}))),
    (Family.ATTENTION, _is_attention),
    (Family.MATMUL, _has(_PRODUCTS)),
    (Family.LOSS, _is_loss),
    (Family.SOFTMAX, _has(_SOFTMAX)),
    (Family.NORMALISATION, _is_norm),
    (Family.POOLING, lambda used: any("pool" in name for name in used)),
    (Family.SCAN, _has(_SCANS)),
    (Family.REDUCTION, _has(_REDUCTIONS)),
    (Family.INDEXING, _has(_INDEXING)),
    (Family.ACTIVATION, _has(_ACTIVATIONS)),
    (Family.ELEMENTWISE, _has(_ELEMENTWISE | {_OPERATORS})),
    (Family.LAYOUT, _has(_LAYOUT)),
)


def family_of(source: str) -> Family:
    """Return the family of a reference; OTHER where it cannot be read, or uses no known operation."""
    try:
        used = Counter(_names(parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Family.OTHER
    return next((family for family, fits in _RULES if fits(used)), Family.OTHER)


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of calls and constructors outside the inputs' recipes: `nn.LayerNorm`, `F.layer_norm` are
    layernorm."""
    waiting: list[ast.AST] = [
        node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in _INPUTS)
    ]
    while waiting:
        node = waiting.pop()
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute):
                yield _normalised(called.attr)
            elif isinstance(called, ast.Name) and not hasattr(builtins, called.id):  # Python's own sum reduces nothing
                yield _normalised(called.id)
        elif isinstance(node, ast.BinOp):
            yield "matmul" if isinstance(node.op, ast.MatMult) else _OPERATORS


def _normalised(name: str) -> str:
    """Return a name without case, underscores and the number of dimensions."""
    name = name.lower().replace("_", "")
    return name[:-2] if name[-2:] in ("1d", "2d", "3d") else name
