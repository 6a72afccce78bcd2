"""Write Triton for the values of a kernel: one per row, or a block of each row."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import QUANTISED, Formula
from synthesis.graph.sizes import Affine, Size
from synthesis.kernel import Kernel

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "and": "&", "or": "|", "xor": "^", "bitand": "&", "shr": ">>",
}  # fmt: skip
EXACT = {
    "exp": "_exp",
    "log": "_log",
    "log1p": "_log1p",
    "tanh": "_tanh",
    "sigmoid": "_sigmoid",
    "silu": "_silu",
    "expm1": "_expm1",
}
QUICK = {
    **EXACT,
    "log": "tl.log",
    "tanh": "_quick_tanh",
    "rsqrt": "tl.rsqrt",
}
LOG2_E = 1.4426950408889634
CALLS = {
    "abs": "tl.abs",
    "erf": "tl.erf",
    "sin": "tl.sin",
    "cos": "tl.cos",
    "floor": "tl.floor",
    "ceil": "tl.ceil",
    "exp2": "tl.exp2",
    "log2": "tl.log2",
}
TEXT = {
    "neg": "-{0}",
    "reciprocal": "1.0 / {0}",
    "where": "tl.where({0}, {1}, {2})",
    "not": "{0} == 0",
    "isnan": "{0} != {0}",
    "isinf": "tl.abs({0}) == float('inf')",
    "trunc": "tl.where({0} < 0, tl.ceil({0}), tl.floor({0}))",
    # Triton's other roots are the hardware's, which take denormal numbers, such as squares of 1e-20, for zeros.
    "sqrt": "tl.sqrt_rn({0})",
    "rsqrt": "1.0 / tl.sqrt_rn({0})",
}
LEAST_FLOOR = 1e-37  # no sum of it and a square is denormal
IDENTITY = {"sum": "0.0", "max": "float('-inf')", "peak": "float('-inf')", "min": "float('inf')"}


@dataclass(slots=True)
class Writer:
    """The lines of one kernel so far, and the names of its values."""

    kernel: Kernel
    mode: str
    exact: bool
    lines: list[str] = field(default_factory=list)
    pieces: set[str] = field(default_factory=set)
    rows: dict[int, str] = field(default_factory=dict)
    columns: dict[tuple[int, str], str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    indent: str = "    "
    online: dict[int, Expr] = field(default_factory=dict)
    axis: int = 1  # of a block, along its rows

    def emit(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def shape(self, rows: str, columns: str) -> str:
        """Return the shape of a block of so many rows and columns."""
        return f"[{rows}, {columns}]" if self.axis == 1 else f"[{columns}, {rows}]"

    @property
    def present(self) -> str:
        """The mask of a block's elements. Rows across memory that are not there repeat the last one: no load of whole
        blocks is masked then, and ptxas has them all in flight at once."""
        return "column_inside" if self.axis == 0 else "inside"

    def unique_name(self, hint: str) -> str:
        name, count = hint, 1
        while name in self.used:
            count += 1
            name = f"{hint}_{count}"
        self.used.add(name)
        return name

    def assign(self, hint: str, text: str) -> str:
        name = self.unique_name(hint)
        self.emit(f"{name} = {text}")
        return name

    # ---- values

    def value(self, expr: Expr, guard: str = "") -> str:
        """Return the name of a value: one per row ([ROWS, 1]) or a block ([ROWS, BLOCK]). `guard` masks its loads
        further."""
        if expr.op == "const":
            return self.constant(expr)
        memo = self.columns if expr.full else None
        key = (expr.number, guard)
        if memo is None and expr.number in self.rows:
            return self.rows[expr.number]
        if memo is not None and key in memo:
            return memo[key]
        name = self.assign(expr.hint, self.text(expr, guard))
        if memo is None:
            self.rows[expr.number] = name
        else:
            memo[key] = name
        return name

    def constant(self, expr: Expr) -> str:
        value = expr.data
        if isinstance(value, Formula):
            size = f"({value.size.text()})"
            text = {
                "value": f"{size} * 1.0",
                "reciprocal": f"1.0 / {size}",
                "sqrt": f"tl.sqrt(zero + {size})",
                "rsqrt": f"1.0 / tl.sqrt(zero + {size})",
            }[value.fn]
            return f"(-({text}))" if value.sign < 0 else f"({text})"
        if isinstance(value, Size):
            return f"({value.text()}" + (" * 1.0)" if expr.type == "f" else ")")
        if expr.type == "b":
            return "(zero == 0.0)" if value else "(zero != 0.0)"
        return _number(float(value)) if expr.type == "f" else str(int(value))

    def text(self, expr: Expr, guard: str) -> str:
        if expr.op == "load":
            return self.load(expr, guard)
        if expr.op == "iota":
            return str(expr.data.text())
        if expr.op == "cat":
            return self.cat(expr, guard)
        if expr.op == "reduce":
            return self.reduce(expr)
        if not self.exact and expr.op in ("exp", "sigmoid", "silu"):
            return self.exponential(expr, guard)
        a = [self.value(arg, guard) for arg in expr.args]
        if all(arg.op == "const" for arg in expr.args):
            a[0] = f"({a[0]} + zero)"
        if expr.op == "cast":
            return (
                f"{a[0]} != 0"
                if expr.type == "b"
                else f"({a[0]}).to({'tl.float32' if expr.type == 'f' else 'tl.int64'})"
            )
        if expr.op in INFIX:
            return f"{a[0]} {INFIX[expr.op]} {a[1]}"
        if expr.op == "div":
            return f"tl.div_rn({a[0]}, {a[1]} + zero)" if self.exact and expr.full else f"{a[0]} / {a[1]}"
        if expr.op in QUANTISED:
            return f"{self.quantised(expr)}.to(tl.float32)"
        calls = EXACT if self.exact else QUICK
        if expr.op in calls and (expr.op != "rsqrt" or _has_floor(expr.args[0])):
            if calls[expr.op].startswith("_"):
                self.pieces.add(calls[expr.op])
            return f"{calls[expr.op]}({a[0]})"
        if expr.op in CALLS:
            return f"{CALLS[expr.op]}({a[0]})"
        if expr.op in ("maximum", "minimum"):
            if expr.type == "i":
                return f"tl.{expr.op}({a[0]}, {a[1]})"
            self.pieces.add("_max" if expr.op == "maximum" else "_min")
            return f"{'_max' if expr.op == 'maximum' else '_min'}({a[0]}, {a[1]})"
        if expr.op not in TEXT:
            raise Unsupported(f"{expr.op} in Triton")
        return TEXT[expr.op].format(*a)

    def exponential(self, expr: Expr, guard: str) -> str:
        """Write exponentials by the hardware's of base two, and the quotient of a sigmoid as the square of a
        reciprocal root: the hardware has both as one instruction, and a division takes six."""
        arg, factor = expr.args[0], LOG2_E if expr.op == "exp" else -LOG2_E
        scaled = arg.op == "mul" and arg.args[1].op == "const" and isinstance(arg.args[1].data, float)
        if scaled and expr.op != "silu":
            arg, factor = arg.args[0], factor * arg.args[1].data
        value = self.value(arg, guard) if arg.op != "const" else f"(zero + {self.constant(arg)})"
        power = f"tl.exp2({value} * {_number(factor)})"
        if expr.op == "exp":
            return power
        root = self.assign("root", f"tl.rsqrt(1.0 + {power})")
        return f"{root} * {root}" if expr.op == "sigmoid" else f"{value} * {root} * {root}"

    def quantised(self, expr: Expr) -> str:
        """Return a value as the type that it is rounded to. The hardware's conversion clamps to its largest number."""
        source, limit = expr.args[0], _limit(expr.args[0])
        while limit == 448.0 and source.op in ("minimum", "maximum"):
            source = source.args[0]
        if limit <= 464.0:
            return f"{self.value(source)}.to(tl.float8e4nv)"
        self.pieces.add(f"_{expr.op}")
        return f"_{expr.op}({self.value(source)})"

    def load(self, expr: Expr, guard: str, other: str = "0") -> str:
        node, offset, chosen = expr.data
        for (variable, extent), index in zip(chosen, expr.args, strict=True):
            if variable not in self.used:
                self.used.add(variable)
                self.emit(f"{variable} = tl.minimum(tl.maximum({self.value(index)}, 0), {extent.text()} - 1)")
        by_row = any(v != INNER for v, _ in offset.terms)
        own = (self.present if by_row else "column_inside") if expr.full else "row_inside" if self.axis == 1 else ""
        mask = " & ".join(part for part in (own, guard) if part)
        place = place_of(offset) if by_row or expr.full else f"{place_of(offset)} + row * 0"
        once = all(offset.coefficient(v) is not None for v, _ in self.kernel.outer)  # else other rows read it too
        hint = ", eviction_policy=EVICT" if expr.full and once and self.kernel.outer else ""
        masked = f", mask={mask}, other={other}" if mask else ""
        in_loop = expr.full and self.axis == 0 and self.mode != "columns"
        pointer = pointer_of_lanes(f"{node.name}_ptr", offset) if in_loop else f"{node.name}_ptr + {place}"
        text = f"tl.load({pointer}{masked}{hint})"
        if expr.type == "f":
            return f"{text}.to(tl.float32)"
        return f"{text} != 0" if expr.type == "b" else f"{text}.to(tl.int64)"

    def cat(self, expr: Expr, guard: str) -> str:
        position, bounds = expr.data
        place = self.assign("place", position.text())
        limits = [f"({place} < {b.text()})" for b in bounds[1:-1]]
        parts = []
        for number, part in enumerate(expr.args):
            conditions = [f"({place} >= {bounds[number].text()})"] if number else []
            conditions += [limits[number]] if number < len(limits) else []
            own = " & ".join([*([guard] if guard else []), *conditions])
            parts.append(self.value(part, own))
        text = parts[-1]
        for limit, name in zip(reversed(limits), reversed(parts[:-1]), strict=True):
            text = f"tl.where({limit}, {name}, {text})"
        return text

    # ---- reductions

    def reduce(self, expr: Expr) -> str:
        """Reduce a whole row that is held in registers."""
        if self.mode not in ("held", "looped", "columns"):
            raise Unsupported("a reduction that is not ready")
        return self.across(expr, f"tl.where({self.present}, {self.value(expr.args[0])}, {IDENTITY[expr.data]})")

    def across(self, expr: Expr, block: str) -> str:
        if expr.data in ("max", "min"):
            self.pieces.add(f"_{expr.data}")
            return f"tl.reduce({block}, {self.axis}, _{expr.data}, keep_dims=True)"
        return f"tl.{'max' if expr.data == 'peak' else 'sum'}({block}, axis={self.axis}, keep_dims=True)"

    def phase(self, expr: Expr) -> int:
        """Return `Expr.phase`, except that one pass computes both a softmax's peak and its total."""
        if expr.op == "reduce":
            pair = self.online.get(expr.number)
            return self.phase(pair.args[0] if pair is not None else expr.args[0]) + 1
        return max((self.phase(a) for a in expr.args), default=0)


def _limit(expr: Expr) -> float:
    """Return the largest magnitude of a value that is clamped at both sides, else infinity."""
    limits: dict[str, float] = {}
    while expr.op in ("minimum", "maximum") and expr.args[1].op == "const" and expr.op not in limits:
        limits[expr.op] = abs(float(expr.args[1].data))
        expr = expr.args[0]
    return max(limits.values()) if len(limits) == 2 and len(set(limits.values())) == 1 else math.inf


def place_of(offset: Affine) -> str:
    """Return an offset with the terms of the row first, so that they are computed once per row."""
    inner = offset.coefficient(INNER)
    rest = offset.without(INNER)
    if inner is None:
        return f"({rest.text()})" if len(rest.terms) + (not rest.const.equals(0)) > 1 else rest.text()
    column = INNER if inner.equals(1) else f"{INNER} * ({inner.text()})"
    return f"({rest.text()}) + {column}" if rest.terms or not rest.const.equals(0) else column


def pointer_of_lanes(name: str, offset: Affine) -> str:
    """Return the pointer of a block in a loop over rows across memory. Blocks differ in its scalar part alone: the
    addresses of many loads take few registers then, and ptxas has them all on their way at once."""
    inner = offset.coefficient(INNER)
    if inner is None:
        return f"{name} + {place_of(offset)}"
    step, rest = inner.text(), offset.without(INNER).text()
    return f"({name} + begun * ({step})) + (({rest}) + lanes * ({step}))"


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float('{value}')"


def _has_floor(expr: Expr) -> bool:
    """Return whether a value has a positive constant added to it, as a norm's epsilon."""
    constants = [arg.data for arg in expr.args if arg.op == "const"] if expr.op == "add" else []
    return any(isinstance(value, float) and value >= LEAST_FLOOR for value in constants)
