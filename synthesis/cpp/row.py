"""Write C++ for the values of a row: doubles, pointers, and vectors of one value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from synthesis.cpp.cat import part_in_segment
from synthesis.cpp.scans import is_back, operation
from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import Formula
from synthesis.graph.sizes import Affine, Size
from synthesis.kernel import Kernel

TYPES = {
    "float32": "float",
    "bool": "bool",
    "int64": "int64_t",
    "int32": "int32_t",
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
}
INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitand": "&",
    "shr": ">>",
}
SCALAR_CALLS = {
    name: f"std::{name}"
    for name in [
        "exp",
        "log",
        "log1p",
        "tanh",
        "erf",
        "sqrt",
        "floor",
        "ceil",
        "trunc",
        "sin",
        "cos",
        "exp2",
        "log2",
        "expm1",
        "pow",
        "atan2",
    ]
} | {"abs": "std::abs", "round": "std::nearbyint"}


@dataclass(slots=True)
class Slot:
    """A place for a value of an earlier pass: the row of an output, or scratch row number `index`."""

    pointer: str
    output: str | None
    index: int


@dataclass(slots=True)
class Writer:
    """The lines of one kernel so far, and the names of its values, vectors and pointers."""

    kernel: Kernel
    keep: bool
    lines: list[str] = field(default_factory=list)
    pieces: set[str] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)
    vectors: dict[int, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    slots: dict[int, Slot] = field(default_factory=dict)
    pointers: dict[int, str] = field(default_factory=dict)
    indent: str = ""
    shares_row: bool = False  # threads share the parts of the only row
    unroll: int = 0  # vectors at a time; 0: as the Tunable says
    tiled: dict[int, str] = field(default_factory=dict)  # where loads find their elements in transposed tiles
    block: tuple[str, str] | None = None  # the part of a row that is gone over; None: all of it
    part: str = "row"  # what is gone over at a time, in names
    scans: dict[int, str] = field(default_factory=dict)  # accumulators of the pass at hand
    joined: bool = False  # the pass at hand goes over all runs of a row as one

    @property
    def times(self) -> str:
        """The argument of templates for how many vectors are taken at a time."""
        return f"<{self.unroll}>" if self.unroll else ""

    # ---- names and text

    def emit(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def unique_name(self, hint: str) -> str:
        name, count = hint, 1
        while name in self.used:
            count += 1
            name = f"{hint}_{count}"
        self.used.add(name)
        return name

    # ---- row values: doubles, integers and booleans, one per row

    def row(self, expr: Expr) -> str:
        if expr.number not in self.names:
            if expr.op == "const":
                return self.row_constant(expr)
            text = self.row_text(expr)
            name = self.unique_name(expr.hint)
            kind = {"f": "double", "i": "int64_t", "b": "bool"}[expr.type]
            self.emit(f"const {kind} {name} = {text};")
            self.names[expr.number] = name
        return self.names[expr.number]

    def row_constant(self, expr: Expr) -> str:
        value = expr.data
        if isinstance(value, Formula):
            size = f"double({value.size.text('/')})"
            text = {
                "value": size,
                "reciprocal": f"(1.0 / {size})",
                "sqrt": f"std::sqrt({size})",
                "rsqrt": f"(1.0 / std::sqrt({size}))",
            }[value.fn]
            return f"(-{text})" if value.sign < 0 else text
        if isinstance(value, Size):
            return f"{'double' if expr.type == 'f' else 'int64_t'}({value.text('/')})"
        if expr.type == "b":
            return "true" if value else "false"
        return literal(float(value)) if expr.type == "f" else str(int(value))

    def row_text(self, expr: Expr) -> str:
        if expr.op == "load":
            return self.row_load(expr)
        if expr.op == "padded":
            node, offset, positions, value = expr.data
            inside = is_inside((p.text("/"), n) for p, n in positions)
            return f"{inside} ? double({node.name}[{offset.text('/')}]) : {literal(float(value))}"
        if expr.op == "iota":
            return str(expr.data.text("/"))
        if expr.op == "cat":
            raise Unsupported("a cat of row values")
        a = [self.row(arg) for arg in expr.args]
        if expr.op in INFIX:
            return f"{a[0]} {INFIX[expr.op]} {a[1]}"
        if expr.op in SCALAR_CALLS:
            return f"{SCALAR_CALLS[expr.op]}({', '.join(a)})"
        if expr.op in ("maximum", "minimum"):
            return f"({a[0]} {'>' if expr.op == 'maximum' else '<'} {a[1]} || {a[0]} != {a[0]}) ? {a[0]} : {a[1]}"
        simple = {
            "neg": "-{0}", "reciprocal": "1.0 / {0}", "rsqrt": "1.0 / std::sqrt({0})", "where": "{0} ? {1} : {2}",
            "sigmoid": "1.0 / (1.0 + std::exp(-{0}))", "silu": "{0} / (1.0 + std::exp(-{0}))", "not": "!{0}",
            "and": "{0} && {1}", "or": "{0} || {1}", "xor": "{0} != {1}", "isnan": "{0} != {0}",
            "isinf": "std::isinf({0})",
        }  # fmt: skip
        if expr.op == "cast":
            return f"{ {'f': 'double', 'i': 'int64_t', 'b': 'bool'}[expr.type] }({a[0]})".replace(" ", "", 1)
        if expr.op not in simple:
            raise Unsupported(f"{expr.op} of row values in C++")
        return simple[expr.op].format(*a)

    def row_load(self, expr: Expr) -> str:
        """Load one element; a computed index is clamped to the tensor."""
        node, offset, chosen = expr.data
        for (variable, extent), index in zip(chosen, expr.args, strict=True):
            if variable not in self.used:
                self.used.add(variable)
                self.pieces.add("algorithm")
                place = f"std::min<int64_t>(std::max<int64_t>({self.row(index)}, 0), {extent.text('/')} - 1)"
                self.emit(f"const int64_t {variable} = {place};")
        return f"{node.name}[{offset.text('/')}]"

    # ---- vectors

    def splat(self, expr: Expr) -> str:
        """Return a vector with a row value in every lane, made once before the pass."""
        if expr.number not in self.vectors:
            value = self.row(expr)
            name = self.unique_name(f"{value if value.isidentifier() else 'c'}_v")
            if expr.type == "f":
                self.emit(f"const V {name} = splat(float({value}));")
            elif expr.type == "i":
                self.emit(f"const M {name} = M{{}} + int32_t({value});")
            else:
                self.emit(f"const M {name} = splat_mask({value});")
            self.vectors[expr.number] = name
        return self.vectors[expr.number]

    def pointer(self, expr: Expr) -> str:
        """Return the start of the row, or of the strip of rows, that a load reads."""
        if expr.number not in self.pointers:
            node, offset, chosen = expr.data[:3]
            if chosen and expr.op == "load":
                raise Unsupported("a gather along the row in C++")
            name = self.unique_name(f"{node.name}_{self.part}")
            self.emit(f"const {TYPES[node.dtype]}* const {name} = {node.name} + {self.start(offset)};")
            self.pointers[expr.number] = name
        return self.pointers[expr.number]

    def start(self, offset: Affine) -> str:
        """Return where the first element is."""
        return self.rest(offset).text("/")

    def rest(self, offset: Affine) -> Affine:
        """Return a position without what differs along the part of the row that a sweep goes over."""
        for variable, _ in self.kernel.runs if self.joined else ():
            offset = offset.without(variable)
        return offset.without(INNER)

    def prepare_outside(self, expr: Expr, seen: set[int]) -> None:
        """Emit, before the loops over runs, the row values that `expr` needs in all of them."""
        if expr.number in seen:
            return
        seen.add(expr.number)
        if not expr.full and not self._differs(expr):
            if not (expr.op == "const" and isinstance(expr.data, int | float)):
                self.splat(expr)
        elif expr.op != "reduce":
            for arg in expr.args:
                self.prepare_outside(arg, seen)

    def _differs(self, expr: Expr) -> bool:
        """Return whether a value differs between the runs of a row."""
        if expr.op == "reduce":
            return False
        positions = expr.data if isinstance(expr.data, tuple) else (expr.data,)
        terms = {v for p in positions if isinstance(p, Affine) for v, _ in p.terms}
        return any(v in terms for v, _ in self.kernel.runs) or any(self._differs(a) for a in expr.args)

    def prepare(self, expr: Expr, seen: set[int], phase: int, segment: int | None, bounds: list[Size]) -> None:
        """Emit, before the sweep, the row values and pointers that `expr` needs in it."""
        if expr.number in seen:
            return
        seen.add(expr.number)
        if not expr.full:
            if not (expr.op == "const" and isinstance(expr.data, int | float)):
                self.splat(expr)
            return
        if expr.number in self.slots and expr.phase < phase:
            return
        if expr.op in ("load", "padded"):
            self.pointer(expr)
        args = (part_in_segment(expr, segment, bounds),) if expr.op == "cat" else expr.args
        for arg in args:
            self.prepare(arg, seen, phase, segment, bounds)
        if expr.op == "scan" and expr.number not in self.scans:
            self.scans[expr.number] = self.unique_name(f"{expr.hint}_carried")
            self.open_scan(expr)

    def open_scan(self, expr: Expr) -> None:
        """Emit the accumulator of a scan."""
        self.pieces.add("Scan")
        kind = f"Scan<{operation(expr.data)}, {'true' if is_back(expr) else 'false'}>"
        self.emit(f"{kind} {self.scans[expr.number]};")


def is_inside(positions: Iterable[tuple[str, Size]]) -> str:
    """Return the condition for positions in a padded tensor to be within their extents."""
    return " && ".join(f"{place} >= 0 && {place} < {extent.text('/')}" for place, extent in positions) or "true"


def literal(value: float, suffix: str = "") -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return repr(value) + suffix
