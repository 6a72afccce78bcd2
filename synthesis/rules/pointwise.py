"""Rules for operations on each element."""

from __future__ import annotations

import math
from typing import Any

from synthesis.errors import Unsupported
from synthesis.graph.build import Operand
from synthesis.graph.decompose import Decomposer
from synthesis.graph.nodes import FLOATS, QUANTISED, Node
from synthesis.graph.sizes import Size
from synthesis.rules.registry import RULES, Calls, rule


def _unary(aten: str, fn: str) -> None:
    def apply(d: Decomposer, calls: Calls, x: Node) -> Node:
        return d.build.pointwise(fn, x, dtype=d.dtype(calls))

    RULES[aten] = apply


def _binary(aten: str, fn: str) -> None:
    def apply(d: Decomposer, calls: Calls, a: Operand, b: Operand) -> Node:
        return d.build.pointwise(fn, a, b, dtype=d.dtype(calls))

    RULES[aten] = apply


for _name in [
    "neg",
    "exp",
    "exp2",
    "log",
    "log2",
    "log1p",
    "expm1",
    "sigmoid",
    "tanh",
    "rsqrt",
    "sqrt",
    "abs",
    "reciprocal",
    "erf",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "trunc",
    "isnan",
    "isinf",
]:
    _unary(_name, _name)
for _name in ["maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "atan2"]:
    _binary(_name, _name)
_unary("negative", "neg")
_unary("absolute", "abs")
_unary("logical_not", "not")
_binary("logical_and", "and")
_binary("logical_or", "or")
_binary("logical_xor", "xor")


@rule("bitwise_and", "__and__", "bitwise_or", "__or__", "bitwise_not")
def _bitwise(d: Decomposer, calls: Calls, a: Node, b: Operand | None = None) -> Node:
    if d.dtype(calls) != "bool":
        if b is None or "and" not in calls[0].op:
            raise Unsupported("integer bit operations")
        return d.build.pointwise("bitand", a, b, dtype=d.dtype(calls))
    if b is None:
        return d.build.pointwise("not", a)
    return d.build.pointwise("and" if "and" in calls[0].op else "or", a, b)


@rule("bitwise_right_shift", "__rshift__")
def _right_shift(d: Decomposer, calls: Calls, a: Node, b: Operand) -> Node:
    if isinstance(b, Node) or (isinstance(a, Node) and a.dtype in FLOATS):
        raise Unsupported("a shift by a tensor")
    return d.build.pointwise("shr", a, b, dtype=d.dtype(calls))


@rule("add")
def _add(d: Decomposer, calls: Calls, a: Operand, b: Operand, alpha: float = 1) -> Node:
    tanh = ("pointwise", "tanh")
    if isinstance(a, Node) and (a.kind, a.fn) == tanh and not isinstance(b, Node) and b == alpha == 1:
        return _one_plus_tanh(d, a.inputs[0], d.dtype(calls))
    return d.build.pointwise("add", a, b if alpha == 1 else d.build.pointwise("mul", b, alpha), dtype=d.dtype(calls))


def _one_plus_tanh(d: Decomposer, x: Node, dtype: str) -> Node:
    """1 + tanh(x) = 2 sigmoid(2 x): one exponential, and nothing cancels for negative x."""
    return d.build.pointwise("mul", d.build.pointwise("sigmoid", d.build.pointwise("mul", x, 2.0)), 2.0, dtype=dtype)


@rule("sub", "subtract")
def _sub(d: Decomposer, calls: Calls, a: Operand, b: Operand, alpha: float = 1) -> Node:
    return d.build.pointwise("sub", a, b if alpha == 1 else d.build.pointwise("mul", b, alpha), dtype=d.dtype(calls))


@rule("rsub")
def _rsub(d: Decomposer, calls: Calls, a: Operand, b: Operand, alpha: float = 1) -> Node:
    return _sub(d, calls, b, a, alpha)  # type: ignore[no-any-return]


@rule("mul", "multiply")
def _mul(d: Decomposer, calls: Calls, a: Operand, b: Operand) -> Node:
    dtype = d.dtype(calls)
    return d.build.pointwise("and" if dtype == "bool" else "mul", a, b, dtype=dtype)


@rule("div", "divide", "true_divide")
def _div(d: Decomposer, calls: Calls, a: Operand, b: Operand) -> Node:
    dtype = d.dtype(calls)
    if isinstance(b, float | int) and not isinstance(b, bool) and b and math.frexp(abs(b))[0] == 0.5:
        return d.build.pointwise("mul", a, 1.0 / b, dtype=dtype)  # a power of two: exact
    return d.build.pointwise("div", _real(d, a), _real(d, b), dtype=dtype)


def _real(d: Decomposer, value: Operand) -> Operand:
    if isinstance(value, Node) and value.dtype not in FLOATS:
        return d.build.pointwise("cast", value, dtype="float32")
    return float(value) if isinstance(value, int) else value


@rule("pow")
def _pow(d: Decomposer, calls: Calls, a: Operand, b: Operand) -> Node:
    dtype = d.dtype(calls)
    build = d.build
    if dtype not in FLOATS or isinstance(a, Size) or isinstance(b, Size):
        raise Unsupported("a power of integers")
    if not isinstance(a, Node) or isinstance(b, Node):
        if not build.across:
            raise Unsupported("a power with a tensor exponent")
        return build.pointwise("pow", _real(d, a), _real(d, b), dtype=dtype)
    if b in (1, 2, 3, 4):
        square = build.pointwise("mul", a, a)
        return {
            1: d.copy(a),
            2: square,
            3: build.pointwise("mul", square, a),
            4: build.pointwise("mul", square, square),
        }[int(b)]
    simple = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if b in simple:
        return build.pointwise(simple[b], a, dtype=dtype)
    return build.pointwise("pow", a, b, dtype=dtype)


@rule("square")
def _square(d: Decomposer, calls: Calls, a: Node) -> Node:
    return d.build.pointwise("mul", a, a, dtype=d.dtype(calls))


@rule("relu")
def _relu(d: Decomposer, calls: Calls, x: Node) -> Node:
    return d.build.pointwise("maximum", x, 0.0 if x.dtype in FLOATS else 0, dtype=d.dtype(calls))


@rule("silu")
def _silu(d: Decomposer, calls: Calls, x: Node) -> Node:
    return d.build.pointwise("silu", x, dtype=d.dtype(calls))


@rule("gelu")
def _gelu(d: Decomposer, calls: Calls, x: Node, approximate: str = "none") -> Node:
    b = d.build
    if approximate == "none":
        inner = b.pointwise("erf", b.pointwise("mul", x, math.sqrt(0.5)))
        return b.pointwise("mul", b.pointwise("mul", x, 0.5), b.pointwise("add", inner, 1.0), dtype=d.dtype(calls))
    cube = b.pointwise("mul", b.pointwise("mul", x, x), x)
    argument = b.pointwise("mul", b.pointwise("add", x, b.pointwise("mul", cube, 0.044715)), math.sqrt(2 / math.pi))
    return b.pointwise("mul", b.pointwise("mul", x, 0.5), _one_plus_tanh(d, argument, x.dtype), dtype=d.dtype(calls))


@rule("leaky_relu")
def _leaky_relu(d: Decomposer, calls: Calls, x: Node, slope: float = 0.01) -> Node:
    b = d.build
    return b.pointwise("where", b.pointwise("gt", x, 0.0), x, b.pointwise("mul", x, slope), dtype=d.dtype(calls))


SELU = (1.6732632423543772, 1.0507009873554805)  # alpha and scale, as torch has them


@rule("elu", "selu", "celu")
def _elu(
    d: Decomposer, calls: Calls, x: Node, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Node:
    b, op = d.build, calls[0].op.split(".")[1]
    if op == "selu":
        alpha, scale = SELU
    elif op == "celu":
        input_scale = 1.0 / alpha
    inner = x if input_scale == 1 else b.pointwise("mul", x, input_scale)
    low = b.pointwise("mul", b.pointwise("expm1", inner), alpha * scale)
    high = x if scale == 1 else b.pointwise("mul", x, scale)
    return b.pointwise("where", b.pointwise("gt", x, 0.0), high, low, dtype=d.dtype(calls))


@rule("mish")
def _mish(d: Decomposer, calls: Calls, x: Node) -> Node:
    b = d.build
    # tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); from e^20 on it is 1.
    e = b.pointwise("exp", b.pointwise("minimum", x, 20.0))
    n = b.pointwise("mul", e, b.pointwise("add", e, 2.0))
    return b.pointwise("mul", x, b.pointwise("div", n, b.pointwise("add", n, 2.0)), dtype=d.dtype(calls))


@rule("softplus")
def _softplus(d: Decomposer, calls: Calls, x: Node, beta: float = 1.0, threshold: float = 20.0) -> Node:
    b = d.build
    scaled = b.pointwise("mul", x, beta)
    soft = b.pointwise("mul", b.pointwise("log1p", b.pointwise("exp", scaled)), 1.0 / beta)
    return b.pointwise("where", b.pointwise("gt", scaled, threshold), x, soft, dtype=d.dtype(calls))


@rule("hardtanh", "relu6", "clamp", "clip", "clamp_min", "clamp_max")
def _clamp(
    d: Decomposer, calls: Calls, x: Node, low: Operand | None = None, high: Operand | None = None, **named: Any
) -> Node:
    b, op = d.build, calls[0].op.split(".")[1]
    low, high = named.get("min", low), named.get("max", high)
    if op == "hardtanh":
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
    elif op == "relu6":
        low, high = 0.0, 6.0
    elif op == "clamp_max":
        low, high = None, low
    result = x
    if low is not None:
        result = b.pointwise("maximum", result, low, dtype=d.dtype(calls))
    if high is not None:
        result = b.pointwise("minimum", result, high, dtype=d.dtype(calls))
    return result


@rule("sign")
def _sign(d: Decomposer, calls: Calls, x: Node) -> Node:
    if x.dtype not in FLOATS:
        raise Unsupported("the sign of integers")
    b = d.build
    above, below = (b.pointwise("cast", b.pointwise(fn, x, 0.0), dtype=x.dtype) for fn in ("gt", "lt"))
    return b.pointwise("sub", above, below, dtype=d.dtype(calls))


@rule("log_sigmoid")
def _log_sigmoid(d: Decomposer, calls: Calls, x: Node) -> Node:
    return log_sigmoid(d, x, d.dtype(calls))


def log_sigmoid(d: Decomposer, x: Node, dtype: str) -> Node:
    """Return min(x, 0) - log(1 + exp(-|x|)), where nothing overflows."""
    b = d.build
    soft = b.pointwise("log1p", b.pointwise("exp", b.pointwise("neg", b.pointwise("abs", x))))
    return b.pointwise("sub", b.pointwise("minimum", x, 0.0), soft, dtype=dtype)


@rule("softshrink")
def _softshrink(d: Decomposer, calls: Calls, x: Node, size: float = 0.5) -> Node:
    b = d.build
    nothing = b.pointwise("mul", x, 0.0)  # NaN stays
    below = b.pointwise("where", b.pointwise("lt", x, -size), b.pointwise("add", x, size), nothing)
    return b.pointwise("where", b.pointwise("gt", x, size), b.pointwise("sub", x, size), below, dtype=d.dtype(calls))


@rule("glu")
def _glu(d: Decomposer, calls: Calls, x: Node, dimension: int = -1) -> Node:
    b, half = d.build, d.shape(calls)[dimension]
    value, gate = (b.slice(x, dimension, start, half) for start in (b.one - 1, half))
    return b.pointwise("mul", value, b.pointwise("sigmoid", gate), dtype=d.dtype(calls))


@rule("hardsigmoid", "hardswish")
def _hard(d: Decomposer, calls: Calls, x: Node) -> Node:
    b = d.build
    gate = b.pointwise("minimum", b.pointwise("maximum", b.pointwise("add", x, 3.0), 0.0), 6.0)
    if "hardsigmoid" in calls[0].op:
        return b.pointwise("mul", gate, 1 / 6, dtype=d.dtype(calls))
    return b.pointwise("mul", b.pointwise("mul", x, gate), 1 / 6, dtype=d.dtype(calls))


@rule("where")
def _where(d: Decomposer, calls: Calls, condition: Node, a: Operand, b: Operand) -> Node:
    return d.build.pointwise("where", condition, a, b, dtype=d.dtype(calls))


@rule("masked_fill")
def _masked_fill(d: Decomposer, calls: Calls, x: Node, mask: Node, value: Operand) -> Node:
    return d.build.pointwise("where", mask, value, x, dtype=d.dtype(calls))


@rule("addcmul")
def _addcmul(d: Decomposer, calls: Calls, x: Node, a: Node, b: Node, value: float = 1) -> Node:
    product = d.build.pointwise("mul", a, b)
    if value != 1:
        product = d.build.pointwise("mul", product, value)
    return d.build.pointwise("add", x, product, dtype=d.dtype(calls))


@rule("lerp")
def _lerp(d: Decomposer, calls: Calls, a: Node, b: Node, weight: Operand) -> Node:
    step = d.build.pointwise("mul", d.build.pointwise("sub", b, a), weight)
    return d.build.pointwise("add", a, step, dtype=d.dtype(calls))


@rule("clone")
def _clone(d: Decomposer, calls: Calls, x: Node, **named: Any) -> Node:
    return d.copy(x)


@rule("to", "_to_copy", "type_as")
def _to(d: Decomposer, calls: Calls, x: Node, *rest: Any, **named: Any) -> Node:
    dtype = d.dtype(calls)
    if dtype == x.dtype:
        copied = "_to_copy" in calls[0].op or named.get("copy", any(r is True for r in rest[2:]))
        return d.copy(x) if copied else x
    return d.build.pointwise(dtype if dtype in QUANTISED else "cast", x, dtype=dtype)


@rule("dropout", "feature_dropout", "alpha_dropout")
def _dropout(d: Decomposer, calls: Calls, x: Node, p: float, train: bool) -> Node:
    if train and p > 0:
        raise Unsupported("dropout in training")
    return x
