"""C++ for one sweep over a segment of a row, on explicit vectors."""

from __future__ import annotations

from dataclasses import dataclass, field

from synthesis.cpp.cat import part_in_segment
from synthesis.cpp.jam import is_product
from synthesis.cpp.row import INFIX, Slot, Writer, is_inside, literal
from synthesis.cpp.scans import goes_back
from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import PLACES
from synthesis.graph.sizes import Affine, Size
from synthesis.kernel import Store

VECTOR_CALLS = {
    name: f"v{name}"
    for name in [
        "exp",
        "log",
        "log1p",
        "tanh",
        "erf",
        "sigmoid",
        "silu",
        "sqrt",
        "rsqrt",
        "abs",
        "floor",
        "ceil",
        "round",
        "trunc",
        "sin",
        "cos",
        "exp2",
        "log2",
        "expm1",
        "pow",
        "atan2",
    ]
} | {"maximum": "vmax", "minimum": "vmin"}
CHOICES = {  # of integers
    "maximum": "select({0} > {1}, {0}, {1})",
    "minimum": "select({0} < {1}, {0}, {1})",
    "abs": "select({0} < 0, -{0}, {0})",
}
CHUNK = 8192
UNBOUNDED = "std::numeric_limits<int64_t>::max() / 2"


@dataclass(slots=True)
class Sweep:
    """The body of one sweep over a segment of the row."""

    writer: Writer
    phase: int
    segment: int | None
    bounds: list[Size]
    lines: list[str] = field(default_factory=list)
    memo: dict[int, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def vector(self, expr: Expr, *, bare: bool = False) -> str:
        """Return the name of a vector with the value; a plain constant stays a number where `bare` allows it."""
        w = self.writer
        if not expr.full:
            if expr.op == "const" and isinstance(expr.data, int | float):
                return self.constant(expr, bare)
            return w.vectors[expr.number]
        if expr.number not in self.memo:
            text = self.text(expr)
            name = self.unique_name(expr.hint)
            self.used.add(name)
            self.lines.append(f"const {'V' if expr.type == 'f' else 'M'} {name} = {text};")
            self.memo[expr.number] = name
        return self.memo[expr.number]

    def unique_name(self, hint: str) -> str:
        name, count = hint, 1
        while name in self.used or name in self.writer.used:
            count += 1
            name = f"{hint}_{count}"
        return name

    def constant(self, expr: Expr, bare: bool) -> str:
        if expr.type == "f":
            text = literal(float(expr.data), "f")
            return text if bare else f"splat({text})"
        if expr.type == "b":
            return f"splat_mask({'true' if expr.data else 'false'})"
        return str(int(expr.data)) if bare else f"(M{{}} + {int(expr.data)})"

    def kept_at(self, slot: Slot) -> str:
        """Return where an earlier sweep kept the values of a step."""
        return f"{slot.pointer} + j"

    def cat(self, expr: Expr) -> str:
        return self.vector(part_in_segment(expr, self.segment, self.bounds))

    def iota(self, expr: Expr) -> str:
        self.writer.pieces.add("iota")
        step, rest = expr.data.coefficient(INNER), self.writer.rest(expr.data).text("/")
        if not step.equals(1):
            return f"iota(0) * int32_t({step.text('/')}) + int32_t(j * ({step.text('/')}) + {rest})"
        return f"iota(j + {rest})"

    def text(self, expr: Expr) -> str:
        w = self.writer
        slot = w.slots.get(expr.number)
        if slot is not None and expr.phase < self.phase:
            return f"load(m, {self.kept_at(slot)})"
        if expr.op == "load":
            return self.load(expr)
        if expr.op == "padded":
            return self.padded(expr)
        if expr.op == "cat":
            return self.cat(expr)
        if expr.op == "iota":
            return self.iota(expr)
        if expr.op in INFIX:
            a, b = expr.args
            if expr.op == "add" and (x := self._of_one_plus_erf(a, b)) is not None:
                w.pieces.add("one_plus_erf")
                return f"one_plus_erf({self.vector(x)})"
            left, right = self.vector(a, bare=b.full), self.vector(b, bare=a.full)
            return f"{left} {INFIX[expr.op]} {right}"
        args = [self.vector(a) for a in expr.args]
        return self.scan(expr, args[0]) if expr.op == "scan" else self.call(expr, args)

    def scan(self, expr: Expr, value: str) -> str:
        return f"{self.writer.scans[expr.number]}.next(m, {value})"

    def _of_one_plus_erf(self, a: Expr, b: Expr) -> Expr | None:
        """Return x where the sum is erf(x) + 1, as in a GELU, and erf(x) is not kept from an earlier pass."""
        one = b.op == "const" and b.type == "f" and b.data == 1
        if not one or a.op != "erf" or not a.full or a.number in self.writer.slots:
            return None
        return a.args[0]

    def call(self, expr: Expr, a: list[str]) -> str:
        w = self.writer
        if expr.op in VECTOR_CALLS and expr.type == "i":
            if expr.op not in CHOICES:
                raise Unsupported(f"{expr.op} of integers along a row in C++")
            w.pieces.add("select")
            return CHOICES[expr.op].format(*a)
        if expr.op in VECTOR_CALLS:
            w.pieces.add(VECTOR_CALLS[expr.op])
            return f"{VECTOR_CALLS[expr.op]}({', '.join(a)})"
        if expr.op == "where":
            w.pieces.add("select")
            return f"select({', '.join(a)})"
        if expr.op == "cast":
            return self.cast(expr, a[0])
        simple = {
            "neg": "-{0}", "reciprocal": "1.0f / {0}", "not": "~{0}", "and": "{0} & {1}", "or": "{0} | {1}",
            "xor": "{0} ^ {1}",
            "isnan": "{0} != {0}", "isinf": "({0} == INF) | ({0} == -INF)",
        }  # fmt: skip
        if expr.op not in simple:
            raise Unsupported(f"{expr.op} along a row in C++")
        return simple[expr.op].format(*a)

    def cast(self, expr: Expr, value: str) -> str:
        source = expr.args[0].type
        if expr.type == "b":
            return f"{value} != 0"
        if expr.type == "f":
            self.writer.pieces.add("to_float")
            return f"to_float({'-' if source == 'b' else ''}{value})"
        self.writer.pieces.add("to_int")
        return f"to_int({value})" if source == "f" else f"-{value}"

    def load(self, expr: Expr) -> str:
        node, offset, _ = expr.data
        if expr.number in self.writer.tiled:
            return f"load(m, {self.writer.tiled[expr.number]})"
        pointer, step = self.writer.pointers[expr.number], offset.coefficient(INNER)
        if step.equals(-1) and node.dtype == "float32":
            self.writer.pieces.add("load_back")
            return f"load_back(m, {pointer} - j)"
        if not step.equals(1):
            self.writer.pieces.add("strided")
            return f"strided(m, {pointer} + j * ({step.text('/')}), {step.text('/')})"
        if node.dtype == "float32":
            load = "load_ahead" if offset.without(INNER).terms else "load"
            self.writer.pieces |= {load} - {"load"}
            return f"{load}(m, {pointer} + j)"
        piece = "load_bool" if node.dtype == "bool" else "load_int"
        self.writer.pieces.add(piece)
        return f"{piece}(m, {pointer} + j)"

    def padded(self, expr: Expr) -> str:
        """Load what is inside a padded tensor; the frame's value is elsewhere."""
        w, lane = self.writer, self.lane
        _, offset, positions, value = expr.data
        step = offset.coefficient(lane) or w.kernel.one - 1
        along = [(p, extent) for p, extent in positions if p.coefficient(lane) is not None]
        if len(along) > 1 or w.joined or any(p.coefficient(lane) != step for p, _ in along):
            raise Unsupported("a row through a padded tensor that is not along a dimension")
        w.pieces.add("padded")
        inside = is_inside((self.position(p), extent) for p, extent in positions if p.coefficient(lane) is None)
        first, extent = (self.position(along[0][0]), along[0][1].text("/")) if along else ("0", UNBOUNDED)
        place, filling = f"{w.pointers[expr.number]} + {self.place(offset)}", literal(float(value), "f")
        return f"padded(m, {inside}, {place}, {step.text('/')}, {first}, {extent}, {filling})"

    @property
    def lane(self) -> str:
        """The variable that differs between the lanes of a vector."""
        return INNER

    def place(self, offset: Affine) -> str:
        """Return where a vector begins in the part that a sweep goes over."""
        return f"j * ({(offset.coefficient(INNER) or self.writer.kernel.one - 1).text('/')})"

    def position(self, offset: Affine) -> str:
        """Return where the first lane of a vector is."""
        return offset.text("/")


def is_dense_float(store: Store) -> bool:
    """Return whether a store writes adjacent floats."""
    step = store.offset.coefficient(INNER)
    return (
        store.node.dtype == "float32"
        and step is not None
        and step.equals(1)
        and store.value.type == "f"
        and store.value.full
    )


@dataclass(slots=True)
class Pass:
    """The results of one pass over a row: reductions, full stores, and values kept for later passes."""

    phase: int
    reductions: list[Expr]
    stores: list[Store]
    kept: list[Expr]
    breaks: list[Size] = field(default_factory=list)

    @property
    def values(self) -> list[Expr]:
        return [r.args[0] for r in self.reductions] + [s.value for s in self.stores] + self.kept

    @property
    def segments(self) -> list[int | None]:
        """The parts of the row in the order of sweeping; None stands for the whole row."""
        return list(range(len(self.breaks) - 1)) if len(self.breaks) > 2 else [None]


def write_sweep(w: Writer, over: Pass, segment: int | None) -> None:
    """Emit the sweep of a pass over one segment. Sums are folded into doubles every CHUNK elements."""
    at = segment or 0
    begin, end = over.breaks[at].text("/"), over.breaks[at + 1].text("/") if at + 2 < len(over.breaks) else "n"
    begin, end = w.block or (begin, end)
    summed = [w.names[r.number] for r in over.reductions if r.data == "sum"]
    sweep = Sweep(w, over.phase, segment, over.breaks)
    before = set(w.used)
    for expr in over.kept:
        sweep.lines.append(f"store(m, {w.slots[expr.number].pointer} + j, {sweep.vector(expr)});")
    for store in over.stores:
        sweep.lines.append(_store_text(w, store, sweep.vector(store.value)))
    for reduction in over.reductions:
        part = f"{w.names[reduction.number]}_part"
        if is_product(reduction):
            factors = ", ".join(sweep.vector(a) for a in reduction.args[0].args)
            sweep.lines.append(f"{part}.add_product(m, u, {factors});")
        else:
            place = "j, " if reduction.data in PLACES else ""
            sweep.lines.append(f"{part}.add(m, u, {place}{sweep.vector(reduction.args[0])});")
    w.used = before
    last = (begin, end)
    shared = w.shares_row and not over.reductions
    back = goes_back(w.kernel, w.scans)
    if back and (summed or segment is not None):
        raise Unsupported("a scan from the end beside sums, or over parts of a row")
    if shared:
        w.emit("#pragma omp parallel for num_threads(threads) schedule(static)")
    if summed or shared:
        w.emit(f"for (int64_t begin = {begin}; begin < {end}; begin += {CHUNK}) {{")
        w.emit(f"  const int64_t end = std::min<int64_t>({end}, begin + {CHUNK});")
        w.pieces.add("algorithm")
        last = ("begin", "end")
        w.indent += "  "
    w.emit(f"sweep{'_back' if back else ''}{w.times}({last[0]}, {last[1]}, [&](int64_t j, auto m, auto u) LAMBDA {{")
    for line in sweep.lines:
        w.emit("  " + line)
    w.emit("});")
    if summed or shared:
        if shared:
            w.emit("stores_done();")
        for name in summed:
            w.emit(f"{name} += {name}_part.fold();")
        w.indent = w.indent[:-2]
        w.emit("}")


def _store_text(w: Writer, store: Store, value: str) -> str:
    node, step = store.node, store.offset.coefficient(INNER)
    place = f"{node.name}_row + j"
    if step is None or not step.equals(1):
        if node.dtype != "float32" or step is None:
            raise Unsupported("a strided store of integers")
        w.pieces.add("strided")
        return f"store_strided(m, {node.name}_row + j * ({step.text('/')}), {step.text('/')}, {value});"
    if node.dtype == "float32":
        if store.value.number in w.slots:
            return f"store(m, {place}, {value});"
        return f"stream(m, {place}, {value});"
    piece = "load_bool" if node.dtype == "bool" else "load_int"
    w.pieces.add(piece)
    return f"store{piece[4:]}(m, {place}, {value});"
