"""Write a kernel whose rows lie side by side in memory: each lane of a vector is a row of its own.

Strips of STRIP rows are gone over together, element by element, so that reads and writes are contiguous. Single numbers
of a row are kept in arrays of a strip's length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from synthesis.cpp.jam import is_product
from synthesis.cpp.row import TYPES, Slot, Writer
from synthesis.cpp.scans import goes_back, operation
from synthesis.cpp.sweep import Pass, Sweep
from synthesis.errors import Unsupported
from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import PLACES
from synthesis.graph.sizes import Affine, Size, product
from synthesis.kernel import Kernel, Store

FOLDED = 32  # floats that a lane adds up before they are added to its double
STRIPS = (16, 32, 64, 128, 256, 512, 1024)  # rows
LEAST_STRIP = 256  # rows: a kilobyte of each line of elements, which processors fetch ahead
CACHED_BYTES = 1 << 20  # of a strip, where later passes read it again
KINDS = {"f": "float", "i": "int32_t", "b": "int32_t"}


@dataclass(frozen=True, slots=True)
class Strips:
    """The loops around a kernel's rows: `apart` ones, and `lane` over rows that are neighbours in memory."""

    apart: tuple[tuple[str, Size], ...]
    lane: tuple[str, Size]


def find_strips(kernel: Kernel) -> Strips | None:
    """Return the loop over rows that are side by side: all stores of elements and most loads are along it."""
    if not kernel.outer or not kernel.in_order or kernel.runs:
        return None
    loads = [e.data[1] for e in kernel.exprs() if e.op in ("load", "padded") and e.full]
    stores = [s.offset for s in kernel.stores if s.full]
    of_rows = [a for a in loads if any(a.coefficient(v) is not None for v, _ in kernel.outer)]
    lane = max(reversed(kernel.outer), key=lambda loop: _adjacent([*loads, *stores], loop[0]))
    along, across = _adjacent([*loads, *stores], lane[0]), _adjacent(of_rows, INNER)
    if along <= across or _adjacent(stores, lane[0]) < len(stores):
        return None
    return Strips(tuple(loop for loop in kernel.outer if loop is not lane), lane)


def _adjacent(accesses: list[Affine], variable: str) -> int:
    steps = [a.coefficient(variable) for a in accesses]
    return sum(step is not None and step.equals(1) for step in steps)


def widths(kernel: Kernel, strips: Strips, threads: int) -> list[int]:
    """Return how many rows a strip may have, the first guess first: as many as the cache and the threads allow."""
    cached = max(LEAST_STRIP, CACHED_BYTES // (4 * max(1, *kernel.length.values)))
    most = cached if kernel.passes > 1 else STRIPS[-1]
    if threads > 1:
        rows = product((extent for _, extent in kernel.outer), kernel.one)
        most = min(most, max(rows.values) // (2 * threads))
    first = max((s for s in STRIPS if s <= most), default=STRIPS[0])
    return [first, *(s for s in STRIPS if s != first)]


@dataclass(slots=True)
class StripWriter(Writer):
    """A Writer for the rows of a strip: row `first + i` is in lane `i`."""

    lane: str = ""
    arrays: dict[int, str] = field(default_factory=dict)  # of values that differ between rows
    parts: dict[int, str] = field(default_factory=dict)  # accumulators of reductions
    pending: list[Expr] = field(default_factory=list)

    def varies(self, expr: Expr) -> bool:
        """Return whether a value differs between the rows of a strip."""
        if expr.op == "reduce" or any(self.varies(a) for a in expr.args):
            return True
        offset = {"load": lambda: expr.data[1], "iota": lambda: expr.data}.get(expr.op)
        return offset is not None and offset().coefficient(self.lane) is not None

    def row(self, expr: Expr) -> str:
        if expr.op == "reduce" and expr.number not in self.names:
            name = self.names[expr.number] = self.unique_name(expr.hint)
            part = self.parts[expr.number]
            kind = "int64_t" if expr.data in PLACES else "double"
            self.emit(f"const {kind} {name} = {part}.{'total[i]' if expr.data == 'sum' else 'of(i)'};")
        return Writer.row(self, expr)

    def splat(self, expr: Expr) -> str:
        """Make a vector with a row value in every lane, or an array where it differs between them."""
        if not self.varies(expr):
            return Writer.splat(self, expr)
        if expr.number not in self.arrays:
            self.arrays[expr.number] = self.unique_name(f"{expr.hint}_lanes")
            self.pending.append(expr)
        return self.arrays[expr.number]

    def open_scan(self, expr: Expr) -> None:
        self.pieces.add("LaneScan")
        self.emit(f"LaneScan<{operation(expr.data)}> {self.scans[expr.number]}(width);")

    def start(self, offset: Affine) -> str:
        """Return where the first row of a strip begins."""
        step = offset.coefficient(self.lane)
        rest = offset.without(INNER).without(self.lane)
        terms = [] if step is None else ["first" if step.equals(1) else f"first * ({step.text('/')})"]
        return " + ".join([rest.text("/"), *terms] if rest.terms or not rest.const.equals(0) or not terms else terms)

    def place(self, offset: Affine) -> str:
        """Return where element `j` of row `i` is behind the start of a strip."""
        along, across = offset.coefficient(INNER), offset.coefficient(self.lane)
        terms = [] if along is None else ["j" if along.equals(1) else f"j * ({along.text('/')})"]
        if across is not None:
            terms.append("i" if across.equals(1) else f"i * ({across.text('/')})")
        return " + ".join(terms)

    def write_rows(self, stores: list[Store]) -> None:
        """Emit a loop over the rows of a strip for the values that wait for their arrays, and for these stores."""
        if not self.pending and not stores:
            return
        for expr in self.pending:
            self.emit(f"alignas(64) {KINDS[expr.type]} {self.arrays[expr.number]}[STRIP];")
        outside, names, used, indent = self.lines, dict(self.names), set(self.used), self.indent
        self.lines, self.indent = [], indent + "  "
        for expr in self.pending:
            sign = "-" if expr.type == "b" else ""
            value = self.row(expr)
            self.emit(f"{self.arrays[expr.number]}[i] = {sign}{KINDS[expr.type]}({value});")
        for store in stores:
            value = self.row(store.value)
            self.emit(f"{store.node.name}[{store.offset.text('/')}] = {TYPES[store.node.dtype]}({value});")
        inside, self.lines, self.names, self.used, self.indent = self.lines, outside, names, used, indent
        self.emit("for (int64_t i = 0; i < width; ++i) {")
        if any(re.search(rf"\b{self.lane}\b", line) for line in inside):
            self.emit(f"  const int64_t {self.lane} = first + i;")
        self.lines += inside
        self.emit("}")
        self.pending = []


@dataclass(slots=True)
class StripSweep(Sweep):
    """The body of one sweep over the elements of a strip's rows."""

    def vector(self, expr: Expr, *, bare: bool = False) -> str:
        w = self.strip
        if expr.full or expr.number not in w.arrays:
            return Sweep.vector(self, expr, bare=bare)
        if expr.number not in self.memo:
            array, name = w.arrays[expr.number], self.unique_name(expr.hint)
            if expr.type != "f":
                w.pieces.add("load_int")
            self.used.add(name)
            self.memo[expr.number] = name
            text = f"load(m, {array} + i)" if expr.type == "f" else f"load_int(m, {array} + i)"
            self.lines.append(f"const {'V' if expr.type == 'f' else 'M'} {name} = {text};")
        return self.memo[expr.number]

    @property
    def strip(self) -> StripWriter:
        assert isinstance(self.writer, StripWriter)
        return self.writer

    def kept_at(self, slot: Slot) -> str:
        return f"{slot.pointer} + j * {slot.pointer}_step + i"

    def cat(self, expr: Expr) -> str:
        raise Unsupported("a cat in strips of rows")

    @property
    def lane(self) -> str:
        return self.strip.lane

    def place(self, offset: Affine) -> str:
        return self.strip.place(offset)

    def position(self, offset: Affine) -> str:
        return f"{self.strip.place(offset)} + {self.strip.start(offset)}"

    def scan(self, expr: Expr, value: str) -> str:
        return f"{self.strip.scans[expr.number]}.next(i, {value})"

    def iota(self, expr: Expr) -> str:
        w = self.strip
        across, number = expr.data.coefficient(w.lane), f"int32_t({self.position(expr.data)})"
        if across is None:
            return f"M{{}} + {number}"
        w.pieces.add("iota")
        return f"iota(0) * int32_t({across.text('/')}) + {number}"

    def load(self, expr: Expr) -> str:
        w = self.strip
        node, offset, _ = expr.data
        place, across = f"{w.pointers[expr.number]} + {w.place(offset)}", offset.coefficient(w.lane)
        if across is None:
            element = f"{w.pointers[expr.number]}[{w.place(offset)}]"
            if node.dtype == "bool":
                return f"splat_mask({element})"
            return f"splat({element})" if node.dtype == "float32" else f"M{{}} + int32_t({element})"
        if not across.equals(1):
            w.pieces.add("strided")
            return f"strided(m, {place}, {across.text('/')})"
        if node.dtype == "float32":
            return f"load(m, {place})"
        piece = "load_bool" if node.dtype == "bool" else "load_int"
        w.pieces.add(piece)
        return f"{piece}(m, {place})"

    def store(self, store: Store, value: str) -> str:
        w, node = self.strip, store.node
        place = f"{node.name}_strip + {w.place(store.offset)}"
        if node.dtype == "float32":
            return f"{'store' if store.value.number in w.slots else 'stream'}(m, {place}, {value});"
        piece = "load_bool" if node.dtype == "bool" else "load_int"
        w.pieces.add(piece)
        return f"store{piece[4:]}(m, {place}, {value});"


def is_float_strip(store: Store) -> bool:
    """Return whether a store writes floats that differ along the rows of a strip."""
    return store.full and store.value.full and store.node.dtype == "float32" and store.value.type == "f"


def open_slots(w: StripWriter, stores: list[Store]) -> None:
    """Emit the pointers of outputs and of kept values for a strip."""
    steps = {}
    for store in stores:
        along = store.offset.coefficient(INNER)
        steps[store.node.name] = along.text("/") if along is not None else ""
        start = w.start(store.offset)
        w.emit(f"{TYPES[store.node.dtype]}* const {store.node.name}_strip = {store.node.name} + {start};")
    for slot in w.slots.values():
        if slot.index < 0:
            w.emit(f"const int64_t {slot.pointer}_step = {steps[slot.output or '']};")
            continue
        place, step = f"memory + {slot.index} * n * widest" if slot.index else "memory", "widest"
        if slot.output:
            place = f"KEEP_IN_OUTPUT ? {slot.output}_strip : {place}"
            step = f"KEEP_IN_OUTPUT ? {steps[slot.output]} : widest"
        w.emit(f"float* const {slot.pointer} = {place};")
        w.emit(f"const int64_t {slot.pointer}_step = {step};")


def write_strip_pass(w: StripWriter, over: Pass) -> None:
    """Emit one pass over the elements of a strip's rows. Sums are folded into doubles every FOLDED elements."""
    w.scans = {}
    for value in over.values:
        w.prepare(value, set(), over.phase, None, over.breaks)
    w.write_rows([])
    for reduction in over.reductions:
        _write_accumulator(w, reduction)
    sweep = StripSweep(w, over.phase, None, over.breaks)
    for expr in over.kept:
        slot = w.slots[expr.number]
        sweep.lines.append(f"store(m, {slot.pointer} + j * {slot.pointer}_step + i, {sweep.vector(expr)});")
    for store in over.stores:
        sweep.lines.append(sweep.store(store, sweep.vector(store.value)))
    for reduction in over.reductions:
        part = w.parts[reduction.number]
        if is_product(reduction):
            factors = ", ".join(sweep.vector(a) for a in reduction.args[0].args)
            sweep.lines.append(f"{part}.add_product(i, {factors});")
        else:
            place = "j, i" if reduction.data in PLACES else "i"
            sweep.lines.append(f"{part}.add({place}, {sweep.vector(reduction.args[0])});")
    w.pieces.add("sweep_strip")
    sums = [w.parts[r.number] for r in over.reductions if r.data == "sum"]
    begin, end = ("begin", "end") if sums else ("0", "n")
    if sums:
        w.pieces.add("algorithm")
        w.emit(f"for (int64_t begin = 0; begin < n; begin += {FOLDED}) {{")
        w.indent += "  "
        w.emit(f"const int64_t end = std::min<int64_t>(n, begin + {FOLDED});")
    back = goes_back(w.kernel, w.scans)
    if back and sums:
        raise Unsupported("a scan from the end beside sums")
    w.emit(f"sweep_strip{'_back' if back else ''}({begin}, {end}, width, [&](int64_t j, int64_t i, auto m) LAMBDA {{")
    for line in sweep.lines:
        w.emit("  " + line)
    w.emit("});")
    if sums:
        for part in sums:
            w.emit(f"{part}.fold(width);")
        w.indent = w.indent[:-2]
        w.emit("}")


def _write_accumulator(w: StripWriter, reduction: Expr) -> None:
    part = w.parts[reduction.number] = w.unique_name(f"{reduction.hint}_part")
    if reduction.data == "sum":
        w.pieces.add("LaneSum")
        w.emit(f"LaneSum {part}(width);")
    elif reduction.data in PLACES:
        w.pieces.add("LanePlace")
        w.emit(f"LanePlace<{-1 if reduction.data == 'argmin' else 1}> {part}(width);")
    else:
        w.pieces.add("LaneExtremum")
        sign, nans = -1 if reduction.data == "min" else 1, "false" if reduction.data == "peak" else "true"
        w.emit(f"LaneExtremum<{sign}, {nans}> {part}(width);")
