"""Write a kernel in Triton: a row held in registers, a row streamed in blocks, or tiles of a pointwise kernel."""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Size
from synthesis.kernel import Kernel, Store
from synthesis.triton.writer import IDENTITY, Writer, place_of


@dataclass(slots=True)
class TritonKernel:
    """The text of one kernel and its arguments: tensors to read, tensors to write, sizes."""

    name: str
    mode: str
    text: str
    pieces: set[str]
    reads: list[Node]
    writes: list[Node]
    sizes: list[str]
    rows: Size
    length: Size


def _online_pairs(kernel: Kernel) -> dict[int, Expr]:
    """Return sums of exp(v - max(v)), by number, with the maximum that one pass computes together with them."""
    pairs: dict[int, Expr] = {}
    for expr in kernel.exprs():
        if expr.op == "reduce" and expr.data == "sum" and expr.args[0].op == "exp":
            centred = expr.args[0].args[0]
            if centred.op == "sub" and centred.args[1].op == "reduce" and centred.args[1].data in ("max", "peak"):
                same = centred.args[1].args[0].number == centred.args[0].number
                if same and centred.args[1].number not in {p.number for p in pairs.values()}:
                    pairs[expr.number] = centred.args[1]
    return pairs


def _rows(kernel: Kernel) -> Size:
    total = kernel.one
    for _, extent in kernel.outer:
        total = total * extent
    return total


def write_kernel(kernel: Kernel, mode: str, *, exact: bool) -> TritonKernel:
    """Write a kernel in Triton. `exact` is for float32 results: no quick hardware functions. Raise Unsupported."""
    w = Writer(kernel, mode, exact)
    sizes = kernel.symbols()
    outputs = [s.node for s in kernel.stores]
    w.used |= {
        "row",
        "row_count",
        "n",
        INNER,
        "inside",
        "row_inside",
        "column_inside",
        "zero",
        "place",
        "start",
        *sizes,
        *(v for v, _ in kernel.outer),
    }
    pointers = [f"{n.name}_ptr" for n in [*kernel.loads(), *outputs]]
    w.used |= set(pointers)
    if mode == "streamed":
        w.online = _online_pairs(kernel)
    _head(w)
    if mode == "streamed":
        _streamed(w)
    else:
        w.emit("column_inside = j < n")
        w.emit("inside = row_inside & column_inside")
        for store in kernel.stores:
            _store(w, store)
    name = f"{kernel.name}_{mode}"
    parameters = ", ".join(
        [*pointers, *sizes, "ROWS: tl.constexpr", "BLOCK: tl.constexpr", "EVICT: tl.constexpr", "INDEX: tl.constexpr"]
    )
    text = "\n".join(["@triton.jit", f"def {name}({parameters}):", *w.lines])
    return TritonKernel(name, mode, text, w.pieces, kernel.loads(), outputs, sizes, _rows(kernel), kernel.length)


def _head(w: Writer) -> None:
    """Emit the rows and columns of this program."""
    kernel = w.kernel
    w.emit(f"row_count = {_rows(kernel).text()}")
    w.emit(f"n = {kernel.length.text()}")
    w.emit("program = tl.program_id(0).to(INDEX)")
    if w.mode == "tiled":
        w.emit("blocks = tl.cdiv(n, BLOCK)")
        w.emit("j = (program % blocks) * BLOCK + tl.arange(0, BLOCK)[None, :]")
        w.emit("program = program // blocks")
    w.emit("row = program * ROWS + tl.arange(0, ROWS)[:, None]")
    w.emit("row_inside = row < row_count")
    w.emit("zero = tl.zeros([1, 1], tl.float32)")
    if w.mode == "held":
        w.emit("j = tl.arange(0, BLOCK)[None, :]")
    loops = list(kernel.outer)
    for number, (variable, extent) in enumerate(loops):
        inner = kernel.one
        for _, other in loops[number + 1 :]:
            inner = inner * other
        text = "row" if inner.equals(1) else f"row // ({inner.text()})"
        w.emit(f"{variable} = {text}" + (f" % ({extent.text()})" if number else ""))
    w.used |= {"program", "blocks"}


def _store(w: Writer, store: Store) -> None:
    value = w.value(store.value)
    mask = "inside" if store.full else "row_inside"
    if not store.value.full:
        kind = "tl.float32" if store.value.type == "f" else "tl.int64"
        value = f"{value} + tl.zeros([ROWS, {'BLOCK' if store.full else 1}], {kind})"
    place = place_of(store.offset) if w.kernel.outer else f"row * 0 + {place_of(store.offset)}"
    w.emit(f"tl.store({store.node.name}_ptr + {place}, {value}, mask={mask})")


def _streamed(w: Writer) -> None:
    """Emit one loop over the row per pass."""
    kernel = w.kernel
    reductions = [e for e in kernel.exprs() if e.op == "reduce"]
    full = [s for s in kernel.stores if s.full]
    last = max([w.phase(r) - 1 for r in reductions] + [w.phase(s.value) for s in full], default=0)
    for phase in range(last + 1):
        here = [r for r in reductions if w.phase(r) == phase + 1]
        stores = [s for s in full if w.phase(s.value) == phase]
        if here or stores:
            _loop(w, here, stores)
    for store in kernel.stores:
        if not store.full:
            _store(w, store)


def _prepare(w: Writer, expr: Expr) -> None:
    """Emit the row values that a block needs, before the loop."""
    if not expr.full:
        if expr.op != "reduce" or expr.number in w.rows:
            w.value(expr)
        return
    for arg in expr.args:
        _prepare(w, arg)


def _loop(w: Writer, reductions: list[Expr], stores: list[Store]) -> None:
    online = {r.number: w.online[r.number] for r in reductions if r.number in w.online}
    peaks = {p.number for p in online.values()}
    plain = [r for r in reductions if r.number not in online and r.number not in peaks]
    for r in plain:
        _prepare(w, r.args[0])
    for peak in online.values():
        _prepare(w, peak.args[0])
    for s in stores:
        _prepare(w, s.value)
    parts: dict[int, str] = {}
    for r in plain:
        parts[r.number] = w.assign(f"{r.hint}_part", f"tl.full([ROWS, BLOCK], {IDENTITY[r.data]}, tl.float32)")
    for number, peak in online.items():
        if peak.number not in parts:
            parts[peak.number] = w.assign(f"{peak.hint}_now", "tl.full([ROWS, 1], float('-inf'), tl.float32)")
        parts[number] = w.assign("total_part", "tl.zeros([ROWS, BLOCK], tl.float32)")
    w.emit("for start in range(0, n, BLOCK):")
    outside, w.indent, w.columns = w.indent, w.indent + "    ", {}
    w.emit("j = start + tl.arange(0, BLOCK)[None, :]")
    w.emit("column_inside = j < n")
    w.emit("inside = row_inside & column_inside")
    for s in stores:
        _store(w, s)
    for r in plain:
        block = f"tl.where(inside, {w.value(r.args[0])}, {IDENTITY[r.data]})"
        part = parts[r.number]
        if r.data == "sum":
            w.emit(f"{part} += {block}")
        else:
            name = "_min" if r.data == "min" else "_max"
            w.pieces.add(name)
            w.emit(f"{part} = {name}({part}, {block})")
    _online_step(w, online, parts)
    w.indent, w.columns = outside, {}
    for r in plain:
        w.rows[r.number] = w.assign(r.hint, w.across(r, parts[r.number]))
    for number, peak in online.items():
        w.rows[peak.number] = parts[peak.number]
        w.rows[number] = w.assign("total", f"tl.sum({parts[number]}, axis=1, keep_dims=True)")


def _online_step(w: Writer, online: dict[int, Expr], parts: dict[int, str]) -> None:
    """Update the running maximum of the row, and the sum of exponentials relative to it, with a block."""
    exp = "_exp" if w.exact else "tl.exp"
    for number, peak in online.items():
        if w.exact:
            w.pieces.add("_exp")
        w.pieces.add("_max")
        block = w.assign("block", f"tl.where(inside, {w.value(peak.args[0])}, float('-inf'))")
        now, total = parts[peak.number], parts[number]
        larger = w.assign("larger", f"_max({now}, {w.across(peak, block)})")
        shift = w.assign("shift", f"tl.where({larger} == float('-inf'), 0.0, {larger})")
        w.emit(f"{total} = {total} * {exp}({now} - {shift}) + {exp}({block} - {shift})")
        w.emit(f"{now} = {larger}")
