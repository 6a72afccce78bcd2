"""Write a kernel in Triton: rows held in registers or streamed in blocks, or tiles of a pointwise kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synthesis.expr import INNER, Expr
from synthesis.graph.nodes import QUANTISED, Node
from synthesis.graph.sizes import Size
from synthesis.kernel import Kernel, Store
from synthesis.triton import columns
from synthesis.triton.fold import fold_constants
from synthesis.triton.specialise import jit, needed_by_rows
from synthesis.triton.writer import IDENTITY, Writer, place_of

STREAMED = ("streamed", "columns_streamed", "columns_parts")
LOWEST = "-3.4028234663852886e38"


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
    pointers: list[str]
    run: Size  # rows that follow each other: the extent of the innermost loop over rows
    needed: set[str]  # sizes that accesses to memory depend on


def online_pairs(kernel: Kernel) -> dict[int, Expr]:
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


def rows_of_kernel(kernel: Kernel) -> Size:
    total = kernel.one
    for _, extent in kernel.outer:
        total = total * extent
    return total


def run_of_kernel(kernel: Kernel) -> Size:
    return kernel.outer[-1][1] if kernel.outer else kernel.one


def loop_lines(kernel: Kernel) -> Iterator[str]:
    """Yield the lines that find a row's loop variables.

    With EVEN the rows of a program differ in the innermost one alone. The compiler sees it if that loop's extent is
    written as a multiple of ROWS, and shares among them what depends on the others.
    """
    rest = "row"
    for place, (variable, extent) in enumerate(reversed(kernel.outer[1:])):
        text = extent.text() if extent.text().isidentifier() else f"({extent.text()})"
        if place == 0 and extent.symbols():
            yield f"run = {text} // ROWS * ROWS if EVEN else {text}"
            text = "run"
        yield f"{variable} = {rest} % {text}"
        yield f"rest = {rest} // {text}"
        rest = "rest"
    for variable, _ in kernel.outer[:1]:
        yield f"{variable} = {rest}"


def write_kernel(kernel: Kernel, mode: str, *, exact: bool, lane: str = "") -> TritonKernel:
    """Write a kernel in Triton. `exact` is for float32 results: no quick hardware functions. Raise Unsupported.

    `lane` is the loop over neighbours in memory, where rows lie across it.
    """
    kernel = kernel if exact else fold_constants(kernel)
    w = Writer(kernel, mode, exact)
    sizes = kernel.symbols()
    outputs = list({id(s.node): s.node for s in kernel.stores}.values())
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
        "begun",
        "lanes",
        "first",
        "step",
        "rest",
        "run",
        *sizes,
        *(v for v, _ in kernel.outer),
    }
    pointers = [f"{n.name}_ptr" for n in [*kernel.loads(), *outputs]]
    w.used |= set(pointers)
    if mode == "streamed":
        w.online = online_pairs(kernel)
    if lane:
        w.axis = 0
        columns.head(w, lane)
    else:
        _head(w)
    if mode in STREAMED:
        _streamed(w)
    else:
        if mode not in ("looped", "columns"):
            w.emit(f"column_inside = {COLUMN_INSIDE}")
        w.emit("inside = row_inside & column_inside")
        for store in sorted(kernel.stores, key=lambda store: w.phase(store.value)):  # those before a reduction first
            _store(w, store)
    name = f"{kernel.name}_{mode}"
    constants = [*OF_PART, "EVICT", "INDEX", *(["STAGES"] if mode in ("looped", "streamed") else [])]
    constants += ["UNROLL"] if lane and mode in STREAMED else []
    constants += ["PIECE"] if mode == "columns_parts" else []
    parameters = ", ".join([*pointers, *sizes, *(f"{c}: tl.constexpr" for c in constants)])
    needed = columns.needed_by_columns(kernel, lane) if lane else needed_by_rows(kernel)
    text = "\n".join([jit(sizes, needed), f"def {name}({parameters}):", *w.lines])
    rows, length, run = rows_of_kernel(kernel), kernel.length, run_of_kernel(kernel)
    return TritonKernel(name, mode, text, w.pieces, kernel.loads(), outputs, sizes, rows, length, pointers, run, needed)


ROW_INSIDE = "tl.full({shape}, True, tl.int1) if EVEN else row < row_count"
# The compiler drops masks that are true everywhere, and with them the doubt whether loads may be vectors.
COLUMN_INSIDE = "tl.full([1, BLOCK], True, tl.int1) if WHOLE else j < n"
OF_PART = ("ROWS", "BLOCK", "EVEN", "WHOLE")  # constants that each kernel of a shared launch has for itself
PROGRAM = "    program = tl.program_id(0).to(INDEX)\n"


def join_kernels(kernels: list[TritonKernel]) -> TritonKernel:
    """Return one kernel that does the work of several independent ones, each by programs of its own."""
    pointers = list(dict.fromkeys(p for k in kernels for p in k.pointers))
    sizes = list(dict.fromkeys(s for k in kernels for s in k.sizes))
    ends = [f"end_{number}" for number in range(len(kernels) - 1)]
    constants = [f"{c}_{number}" for number in range(len(kernels)) for c in OF_PART]
    constants += ["EVICT", "INDEX"]
    name = "_and_".join(k.name.removesuffix("_tiled") for k in kernels)
    parameters = ", ".join([*pointers, *sizes, *ends, *(f"{c}: tl.constexpr" for c in constants)])
    needed = set[str]().union(*(k.needed for k in kernels))
    lines = [jit([*sizes, *ends], needed), f"def {name}({parameters}):", PROGRAM.rstrip()]
    texts = []
    for number, kernel in enumerate(kernels):
        head, body = kernel.text.split("\n", 2)[1], kernel.text.split("\n", 2)[2]
        texts.append("\n".join(["@triton.jit", head.replace("(", "(program, ", 1), body.replace(PROGRAM, "", 1)]))
        own = [f"{c}_{number}" for c in OF_PART]
        given = ", ".join([*kernel.pointers, *kernel.sizes, *own, "EVICT", "INDEX"])
        last = number == len(kernels) - 1
        lines.append("    else:" if last else f"    {'el' if number else ''}if program < {ends[number]}:")
        lines.append(f"        {kernel.name}({f'program - {ends[number - 1]}' if number else 'program'}, {given})")
    pieces = set().union(*(k.pieces for k in kernels))
    text = "\n\n\n".join([*texts, "\n".join(lines)])
    first = kernels[0]
    return TritonKernel(
        name, "tiled", text, pieces, [], [], sizes, first.rows, first.length, pointers, first.run, needed
    )


def _head(w: Writer) -> None:
    """Emit the rows and columns of this program."""
    kernel = w.kernel
    w.emit(f"row_count = {rows_of_kernel(kernel).text()}")
    w.emit(f"n = {kernel.length.text()}")
    w.emit(f"{'first' if w.mode == 'looped' else 'program'} = tl.program_id(0).to(INDEX)")
    if w.mode == "tiled":
        w.emit("blocks = tl.cdiv(n, BLOCK)")
        w.emit("j = (program % blocks) * BLOCK + tl.arange(0, BLOCK)[None, :]")
        w.emit("program = program // blocks")
    if w.mode == "looped":
        _loop_over_rows(w)
    w.emit("row = program * ROWS + tl.arange(0, ROWS)[:, None]")
    w.emit(f"row_inside = {ROW_INSIDE.format(shape='[ROWS, 1]')}")
    if w.mode != "looped":
        w.emit("zero = tl.zeros([1, 1], tl.float32)")
    if w.mode == "held":
        w.emit("j = tl.arange(0, BLOCK)[None, :]")
    for line in loop_lines(kernel):
        w.emit(line)
    w.used |= {"program", "blocks"}


def _loop_over_rows(w: Writer) -> None:
    """Emit what all rows share, then the loop over this program's rows: the next ones are loaded meanwhile."""
    w.emit("zero = tl.zeros([1, 1], tl.float32)")
    w.emit("j = tl.arange(0, BLOCK)[None, :]")
    w.emit(f"column_inside = {COLUMN_INSIDE}")
    for expr in w.kernel.exprs():
        if expr.op == "load" and expr.full and not expr.args and not expr.data[1].without(INNER).terms:
            w.value(expr)
    w.emit("step = tl.num_programs(0)")
    w.emit("for program in tl.range(first, tl.cdiv(row_count, ROWS), step, num_stages=STAGES):")
    w.indent += "    "


def _store(w: Writer, store: Store) -> None:
    value = w.quantised(store.value) if store.value.op in QUANTISED else w.value(store.value)
    mask = "inside" if store.full else "row_inside"
    if not store.value.full:
        kind = "tl.float32" if store.value.type == "f" else "tl.int64"
        value = f"{value} + tl.zeros({w.shape('ROWS', 'BLOCK' if store.full else '1')}, {kind})"
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
        parts[r.number] = w.assign(
            f"{r.hint}_part", f"tl.full({w.shape('ROWS', 'BLOCK')}, {IDENTITY[r.data]}, tl.float32)"
        )
    for number, peak in online.items():
        if peak.number not in parts:
            lanes = f"[ROWS, BLOCK // {_lane(w.kernel)}]"
            parts[peak.number] = w.assign(f"{peak.hint}_now", f"tl.full({lanes}, {LOWEST}, tl.float32)")
        parts[number] = w.assign("total_part", f"tl.zeros({lanes}, tl.float32)")
    first = "begin" if w.mode == "columns_parts" else "0"
    how = "num_stages=STAGES" if w.axis == 1 else "num_stages=1, loop_unroll_factor=UNROLL"
    w.emit(f"for start in tl.range({first}, n, BLOCK, {how}):")
    outside, w.indent, w.columns = w.indent, w.indent + "    ", {}
    if w.axis == 0:
        w.emit("begun = tl.zeros([], INDEX) + start")
        columns.positions(w, "start + ")
    else:
        w.emit("j = start + tl.arange(0, BLOCK)[None, :]")
        w.emit(f"column_inside = {COLUMN_INSIDE}")
    w.emit("inside = row_inside & column_inside")
    for s in stores:
        _store(w, s)
    for r in plain:
        block = f"tl.where({w.present}, {w.value(r.args[0])}, {IDENTITY[r.data]})"
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
        _join_lanes(w, number, peak, parts)


def _lane(kernel: Kernel) -> int:
    """Return how many neighbouring elements share a peak and a sum: as many as a thread loads at once."""
    wide = any(e.op == "load" and e.full and e.data[0].dtype in ("float32", "mixed") for e in kernel.exprs())
    lane = 4 if wide else 8
    return lane if all(n % lane == 0 for n in kernel.length.values) else 1


def _online_step(w: Writer, online: dict[int, Expr], parts: dict[int, str]) -> None:
    """Update the peak of each lane, and its sum of exponentials relative to it."""
    lane = _lane(w.kernel)
    w.pieces.add("_max")
    for number, peak in online.items():
        value = peak.args[0]
        if value.op == "load" and not value.args:
            block = w.load(value, "", other="float('-inf')")
        else:
            block = f"tl.where(inside, {w.value(value)}, float('-inf'))"
        now, total = parts[peak.number], parts[number]
        block = w.assign("block", f"tl.reshape({block}, [ROWS, BLOCK // {lane}, {lane}])")
        peak_now = w.assign("higher", f"_max({now}, tl.reduce({block}, 2, _max))")
        powers = w.assign("powers", _power(w, f"{block} - {peak_now}[:, :, None]"))
        w.emit(f"{total} = {total} * {_power(w, f'{now} - {peak_now}')} + tl.sum({powers}, axis=2)")
        w.emit(f"{now} = {peak_now}")


def _join_lanes(w: Writer, number: int, peak: Expr, parts: dict[int, str]) -> None:
    """Join the peaks and sums of a row's lanes. A row without a finite element, or an empty one, has no sum."""
    now, total = parts[peak.number], parts[number]
    whole = w.assign("whole", w.across(peak, now))
    w.rows[number] = w.assign("total", f"tl.sum({total} * {_power(w, f'{now} - {whole}')}, axis=1, keep_dims=True)")
    w.rows[peak.number] = w.assign(peak.hint, f"tl.where({w.rows[number]} == 0.0, float('-inf'), {whole})")


def _power(w: Writer, text: str) -> str:
    """Return the exponential of a number that is not above zero. Where inputs have 16 bits, the hardware's is as good:
    what is far below the peak counts for little."""
    exact = any(e.op == "load" and e.full and e.data[0].dtype in ("float32", "mixed") for e in w.kernel.exprs())
    if not exact:
        return f"tl.exp2(({text}) * 1.4426950408889634)"
    w.pieces.add("_exp")
    return f"_exp({text})"
