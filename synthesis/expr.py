"""Expressions: one element of a result, over the loop variables of one kernel.

Equal expressions are one object (`Table` interns them), so common parts are computed once. An expression is of level
"full" where it changes along the row (variable `j`), of level "row" where it is one number per row. `phase` is the
number of passes over the row that must be complete before it can be computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from synthesis.graph.nodes import FLOATS, PLACES, QUANTISED, Node
from synthesis.graph.sizes import Affine, Size

INNER = "j"
SEGMENT = "s"
COSTLY = frozenset(
    ["exp", "exp2", "expm1", "log", "log2", "log1p", "sigmoid", "silu", "tanh", "erf", "pow", "sin", "cos", "atan2"]
)
BOOLEAN = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "not", "and", "or", "xor", "isnan", "isinf"])
Type = str  # "f" float32, "i" integer, "b" boolean


@dataclass(eq=False, slots=True)
class Expr:
    """One value. `op` is a pointwise function or one of these:

    - load (data: Node, Affine offset, chosen; args: computed indices)
    - padded (data: Node, Affine offset, positions with the extents that they must be in, value elsewhere)
    - const (data: number, Formula or Size)
    - iota (data: Affine)
    - cat (data: Affine position, bounds)
    - reduce (data: function; args: body)
    - scan (data: function; args: body): of all elements of the row up to this one
    - segment (the same over a segment of the row: one number for each segment)

    `chosen` names the variables of the offset that are computed indices instead of loop variables, each with the number
    of places that it may point to.
    """

    op: str
    args: tuple[Expr, ...]
    data: Any
    type: Type
    full: bool
    phase: int
    hint: str
    number: int = field(default=0)

    @property
    def costly(self) -> bool:
        return self.op == "scan" or self.op in COSTLY or any(a.costly for a in self.args if a.full)

    def leaves(self) -> set[int]:
        """Return the numbers of the loads along the row that this value needs."""
        if self.op == "load":
            return {self.number}
        return set().union(*(a.leaves() for a in self.args if a.full)) if self.args else set()


def kind_of(dtype: str) -> Type:
    return "b" if dtype == "bool" else "f" if dtype in (*FLOATS, *QUANTISED) else "i"


class Table:
    """Interns expressions and converts arguments to common types."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Expr] = {}
        self.all: list[Expr] = []

    def _make(self, op: str, args: tuple[Expr, ...], data: Any, kind: Type, full: bool, phase: int, hint: str) -> Expr:
        key = (op, tuple(a.number for a in args), _key(data), kind)
        if key not in self._known:
            self._known[key] = Expr(op, args, data, kind, full, phase, hint, len(self.all))
            self.all.append(self._known[key])
        return self._known[key]

    def load(
        self, node: Node, offset: Affine, chosen: tuple[tuple[str, Any], ...] = (), indices: tuple[Expr, ...] = ()
    ) -> Expr:
        full = offset.coefficient(INNER) is not None or any(i.full for i in indices)
        phase = max((i.phase for i in indices), default=0)
        return self._make("load", indices, (node, offset, chosen), kind_of(node.dtype), full, phase, node.name)

    def padded(self, node: Node, offset: Affine, inside: tuple[tuple[Affine, Size], ...], value: float) -> Expr:
        full = any(a.coefficient(INNER) is not None for a in (offset, *(position for position, _ in inside)))
        return self._make("padded", (), (node, offset, inside, value), "f", full, 0, f"{node.name}_padded")

    def const(self, value: Any, kind: Type) -> Expr:
        return self._make("const", (), value, kind, False, 0, "c")

    def iota(self, position: Affine) -> Expr:
        return self._make("iota", (), position, "i", position.coefficient(INNER) is not None, 0, "index")

    def cat(self, position: Affine, bounds: tuple[Any, ...], parts: tuple[Expr, ...]) -> Expr:
        full = position.coefficient(INNER) is not None or any(p.full for p in parts)
        return self._make("cat", parts, (position, bounds), parts[0].type, full, max(p.phase for p in parts), "cat")

    def reduce(self, fn: str, body: Expr, hint: str) -> Expr:
        if body.type != "f":
            body = self.cast(body, "f")
        return self._make("reduce", (body,), fn, "i" if fn in PLACES else "f", False, body.phase + 1, hint)

    def scan(self, fn: str, body: Expr, hint: str) -> Expr:
        return self._make("scan", (self.cast(body, "f"),), fn, "f", True, body.phase, hint)

    def segment(self, fn: str, body: Expr, hint: str) -> Expr:
        return self._make("segment", (self.cast(body, "f"),), fn, "f", False, body.phase + 1, hint)

    def cast(self, value: Expr, kind: Type) -> Expr:
        if value.type == kind:
            return value
        if value.op == "const" and kind == "f" and isinstance(value.data, int | float):
            return self.const(float(value.data), "f")
        return self._make("cast", (value,), kind, kind, value.full, value.phase, value.hint)

    def pointwise(self, fn: str, args: tuple[Expr, ...], kind: Type, hint: str) -> Expr:
        """Apply `fn` to `args`, converted to one type first. `kind` is the type of the result."""
        if fn == "cast":
            return self.cast(args[0], kind)
        if fn == "where":
            args = (self.cast(args[0], "b"), self.cast(args[1], kind), self.cast(args[2], kind))
        elif fn in ("and", "or", "xor", "not"):
            args = tuple(self.cast(a, "b") for a in args)
        elif fn in BOOLEAN:
            common = "f" if any(a.type == "f" for a in args) or fn in ("isnan", "isinf") else "i"
            args = tuple(self.cast(a, common) for a in args)
        else:
            args = tuple(self.cast(a, kind) for a in args)
        full = any(a.full for a in args)
        return self._make(fn, args, None, kind, full, max(a.phase for a in args), hint)


def _key(data: Any) -> Any:
    if isinstance(data, Node):
        return ("node", id(data))
    if isinstance(data, tuple):
        return tuple(_key(item) for item in data)
    if isinstance(data, float):
        return ("float", repr(data))
    return (type(data).__name__, data)
