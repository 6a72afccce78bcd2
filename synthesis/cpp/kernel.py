"""Write a kernel as C++ for the CPU: passes over a row that stays in the cache, one row after the other or rows shared
among threads."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from synthesis.cpp.cat import find_breaks
from synthesis.cpp.jam import COLUMNS, Jam, find_jam, several, shifts_of, unroll
from synthesis.cpp.processor import Processor
from synthesis.cpp.row import TYPES, Slot, Writer
from synthesis.cpp.strip import (
    Strips,
    StripWriter,
    find_strips,
    is_float_strip,
    open_slots,
    widths,
    write_strip_pass,
)
from synthesis.cpp.sweep import Pass, is_dense_float, write_sweep
from synthesis.cpp.tile import Tiles, fill_tiles, find_tiles, open_tiles
from synthesis.errors import Unsupported
from synthesis.expr import Expr
from synthesis.graph.nodes import PLACES, Node
from synthesis.graph.sizes import Size, product
from synthesis.kernel import Kernel, Store, is_one_run


@dataclass(slots=True)
class CppKernel:
    """The text of one kernel and its arguments: tensors to read, tensors to write, sizes, perhaps threads."""

    name: str
    text: str
    pieces: set[str]
    reads: list[Node]
    writes: list[Node]
    sizes: list[str]
    kept: bool
    parallel: bool  # its last argument is the number of threads
    widths: list[int]  # rows of a strip, the first guess first; none where rows are gone over alone
    tiled: bool = False


def _boundary(expr: Expr, phase: int, found: dict[int, Expr]) -> None:
    """Collect the outermost values of earlier passes that `expr` uses in pass `phase`."""
    if not expr.full or expr.op in ("load", "padded", "iota", "const"):
        return
    if expr.phase < phase:
        found[expr.number] = expr
        return
    for arg in expr.args:
        _boundary(arg, phase, found)


def _needs(kernel: Kernel, phase: int) -> tuple[list[Expr], list[Store]]:
    """Return the reductions and the full stores of a pass."""
    reductions = [e for e in kernel.exprs() if e.op == "reduce" and e.args[0].phase == phase]
    return reductions, [s for s in kernel.stores if s.full and s.value.phase == phase]


def _assign_slots(w: Writer, dense: list[Store]) -> None:
    """Decide which values of earlier passes are kept rather than computed again, perhaps in one of `dense`."""
    kernel = w.kernel
    stored, free = {s.value.number: s for s in dense}, list(dense)
    scratch = 0
    for phase in range(1, kernel.passes if not kernel.runs else 0):
        reductions, stores = _needs(kernel, phase)
        found: dict[int, Expr] = {}
        for value in [r.args[0] for r in reductions] + [s.value for s in stores]:
            _boundary(value, phase, found)
        for number, expr in found.items():
            if number in w.slots or expr.type != "f" or expr.op == "cat":
                continue
            if number in stored:
                w.slots[number] = Slot(f"{stored[number].node.name}_{w.part}", stored[number].node.name, -1)
            elif w.keep and expr.costly:
                later = next(
                    (
                        s
                        for s in free
                        if s.value.phase > expr.phase and s.value.phase >= phase and s.value.number not in w.slots
                    ),
                    None,
                )
                if later is not None:
                    free.remove(later)
                w.slots[number] = Slot(w.unique_name(f"{expr.hint}_kept"), later.node.name if later else None, scratch)
                scratch += 1


def write_kernel(kernel: Kernel, processor: Processor, *, keep: bool, parallel: bool = False) -> CppKernel:
    """Write a kernel in C++. With `keep`, costly values that a later pass needs are kept.

    With `parallel`, threads share the rows, or the parts of a single row without reductions. Raise Unsupported.
    """
    for node in [*kernel.loads(), *(s.node for s in kernel.stores)]:
        if node.dtype not in TYPES:
            raise Unsupported(f"{node.dtype} in C++")
    if any(s.offset.coefficient(v) is not None for s in kernel.stores if not s.full for v, _ in kernel.runs):
        raise Unsupported("a number of each run of a row")
    if (strips := find_strips(kernel)) is not None:
        with contextlib.suppress(Unsupported):
            written = _write_strips(kernel, strips, keep=keep, parallel=parallel)
            return replace(written, widths=widths(kernel, strips, processor.threads if parallel else 1))
    if (jam := find_jam(kernel, processor.sums)) is not None:
        return _write_jammed(kernel, jam, parallel=parallel)
    if (tiles := find_tiles(kernel)) is not None:
        return _write_tiled(kernel, tiles, keep=keep, parallel=parallel)
    w = _writer(kernel, keep)
    _assign_slots(w, _dense(kernel))
    scratches = [s for s in w.slots.values() if s.index >= 0]
    _open_rows(w, len(scratches), parallel=parallel)
    _write_row(w, scratches)
    for _ in kernel.outer:
        w.indent = w.indent[:-2]
        w.emit("}")
    if _dense(kernel):
        w.emit("stores_done();")
    if parallel and kernel.outer:
        w.emit("}")
    return _closed(kernel, w.lines, w.pieces, kept=bool(scratches))


def _dense(kernel: Kernel) -> list[Store]:
    return [s for s in kernel.stores if is_dense_float(s)]


def _write_row(w: Writer, scratches: list[Slot]) -> None:
    """Emit the code for one row."""
    if not w.kernel.runs:
        _open_stores(w, w.kernel.stores)
    for slot in scratches:
        own = f"memory + {slot.index} * (n + 64)"
        w.emit(
            f"float* const {slot.pointer} = {f'KEEP_IN_OUTPUT ? {slot.output}_row : {own}' if slot.output else own};"
        )
    _write_passes(w)


def _open_stores(w: Writer, stores: list[Store]) -> None:
    """Emit where a row, or a run of it, begins in each output."""
    for store in stores:
        if store.full:
            kind = TYPES[store.node.dtype]
            w.emit(f"{kind}* const {store.node.name}_row = {store.node.name} + {w.start(store.offset)};")


def _writer(kernel: Kernel, keep: bool, unroll: int = 0) -> Writer:
    w = Writer(kernel, keep, unroll=unroll)
    _reserve(w)
    return w


def _reserve(w: Writer) -> None:
    kernel = w.kernel
    w.used |= {n.name for n in kernel.loads()} | {"n", "j", "m", "u", "threads", *kernel.symbols()}
    w.used |= {v for v, _ in (*kernel.outer, *kernel.runs)}
    for store in kernel.stores:
        w.used |= {store.node.name, f"{store.node.name}_{w.part}"}


def _closed(kernel: Kernel, lines: list[str], pieces: set[str], *, kept: bool) -> CppKernel:
    """Return the function with these lines."""
    outputs = [s.node for s in kernel.stores]
    parameters = [f"const {TYPES[n.dtype]}* {n.name}" for n in kernel.loads()]
    parameters += [f"{TYPES[o.dtype]}* {o.name}" for o in outputs]
    parameters += [f"int64_t {s}" for s in kernel.symbols()]
    shared = any("#pragma omp" in line for line in lines)
    parameters += ["int threads"] if shared else []
    head = f'extern "C" void {kernel.name}({", ".join(parameters)}) {{'
    text = "\n".join([head, *("  " + line for line in lines), "}"])
    return CppKernel(kernel.name, text, pieces, kernel.loads(), outputs, kernel.symbols(), kept, shared, [])


def _write_strips(kernel: Kernel, strips: Strips, *, keep: bool, parallel: bool) -> CppKernel:
    """Write a kernel that goes over strips of rows. Raise Unsupported."""
    lane, rows = strips.lane
    w = StripWriter(kernel, keep, lane=lane, part="strip")
    _reserve(w)
    w.used |= {"i", "first", "width", "widest", "memory"}
    full = [s for s in kernel.stores if s.full]
    _assign_slots(w, [s for s in full if is_float_strip(s)])
    scratches = sum(slot.index >= 0 for slot in w.slots.values())
    _open_team(w, parallel=parallel)
    if scratches:
        w.pieces.add("scratch")
        w.emit(f"const int64_t widest = std::min<int64_t>(STRIP, {rows.text('/')});")
        w.emit(f"float* const memory = scratch({f'{scratches} * ' if scratches > 1 else ''}n * widest);")
    _open_parts(w, strips.apart, rows, "STRIP", parallel=parallel)
    open_slots(w, full)
    for phase in range(kernel.passes):
        if (over := _pass_of(w, phase)) is not None:
            write_strip_pass(w, over)
    w.write_rows([s for s in kernel.stores if not s.full])
    for _ in kernel.outer:
        _close_loop(w)
    if any(is_float_strip(s) for s in full):
        w.emit("stores_done();")
    if parallel:
        w.emit("}")
    return _closed(kernel, w.lines, w.pieces, kept=bool(scratches))


def _open_team(w: Writer, *, parallel: bool) -> None:
    """Emit the length of rows, and begin the part that threads share."""
    w.emit(f"const int64_t n = {w.kernel.length.text('/')};")
    if parallel:
        w.emit("#pragma omp parallel num_threads(threads)")
        w.emit("{")


def _open_parts(w: Writer, apart: Sequence[tuple[str, Size]], rows: Size, step: str, *, parallel: bool) -> None:
    """Emit the heads of the loops over `step` rows at a time, and how many there are in one turn."""
    if parallel:
        w.emit(f"#pragma omp for collapse({len(w.kernel.outer)}) schedule(static)")
    for variable, extent in apart:
        _open_loop(w, f"for (int64_t {variable} = 0; {variable} < {extent.text('/')}; ++{variable}) {{")
    _open_loop(w, f"for (int64_t first = 0; first < {rows.text('/')}; first += {step}) {{")
    w.pieces.add("algorithm")
    w.emit(f"const int64_t width = std::min<int64_t>({step}, {rows.text('/')} - first);")


def _write_tiled(kernel: Kernel, tiles: Tiles, *, keep: bool, parallel: bool) -> CppKernel:
    """Write a kernel that transposes what lies across its rows, a tile of it or several rows at a time."""
    lane, rows = tiles.lane
    w = _writer(kernel, keep)
    w.used |= {"i", "first", "width", "begin", "end", "memory"}
    _assign_slots(w, _dense(kernel))
    scratches = [s for s in w.slots.values() if s.index >= 0]
    _open_team(w, parallel=parallel)
    kept = [f"{len(scratches)} * (n + 64)"] if scratches else []
    if sizes := kept + tiles.memory():
        w.pieces.add("scratch")
        w.emit(f"float* const memory = scratch({' + '.join(sizes)});")
    _open_parts(w, tiles.apart, rows, "TILE", parallel=parallel)
    if tiles.blocked:
        _open_loop(w, "for (int64_t begin = 0; begin < n; begin += TILE) {")
        w.emit("const int64_t end = std::min<int64_t>(n, begin + TILE);")
        w.block = ("begin", "end")
    names = fill_tiles(w, tiles, kept)
    _open_loop(w, "for (int64_t i = 0; i < width; ++i) {")
    w.emit(f"const int64_t {lane} = first + i;")
    open_tiles(w, tiles, names)
    _write_row(w, scratches)
    for _ in range(len(kernel.outer) + 1 + tiles.blocked):
        _close_loop(w)
    if _dense(kernel):
        w.emit("stores_done();")
    if parallel:
        w.emit("}")
    return replace(_closed(kernel, w.lines, w.pieces, kept=bool(scratches)), tiled=True)


def _write_jammed(kernel: Kernel, jam: Jam, *, parallel: bool) -> CppKernel:
    """Write a kernel that computes blocks of rows in one sweep, and the rest one by one."""
    w = _writer(kernel, keep=False)
    _open_team(w, parallel=parallel)
    column, extent = jam.column[0], jam.column[1].text("/")
    whole = f"({extent}) / {COLUMNS} * {COLUMNS}"
    for columns, begin, end in ((COLUMNS, "0", whole), (1, whole, extent)):
        if parallel:
            w.emit(f"#pragma omp for schedule(static) collapse({len(jam.apart) + 1})")
        for variable, size in jam.apart:
            _open_loop(w, f"for (int64_t {variable} = 0; {variable} < {size.text('/')}; ++{variable}) {{")
        _open_loop(w, f"for (int64_t {column} = {begin}; {column} < {end}; {column} += {columns}) {{")
        if jam.row is None:
            _write_block(w, jam, columns, 1)
        else:
            row, count = jam.row[0], jam.row[1].text("/")
            w.emit(f"int64_t {row} = 0;")
            for rows in sorted({jam.rows if columns > 1 else 1, 1}, reverse=True):
                _open_loop(w, f"for (; {row} + {rows} <= {count}; {row} += {rows}) {{")
                _write_block(w, jam, columns, rows)
                _close_loop(w)
        for _ in range(len(jam.apart) + 1):
            _close_loop(w)
    if parallel:
        w.emit("}")
    return _closed(kernel, w.lines, w.pieces, kept=False)


def _write_block(w: Writer, jam: Jam, columns: int, rows: int) -> None:
    block = several(w.kernel, shifts_of(jam, columns, rows))
    inner = _writer(block, keep=False, unroll=unroll(jam, columns, rows))
    inner.indent = w.indent
    _write_passes(inner)
    w.lines += inner.lines
    w.pieces |= inner.pieces


def _open_loop(w: Writer, head: str) -> None:
    w.emit(head)
    w.indent += "  "


def _close_loop(w: Writer) -> None:
    w.indent = w.indent[:-2]
    w.emit("}")


def _write_passes(w: Writer) -> None:
    """Emit the passes over a row, and the stores of its numbers."""
    for phase in range(w.kernel.passes):
        _write_pass(w, phase)
    for store in w.kernel.stores:
        if not store.full:
            w.emit(f"{store.node.name}[{store.offset.text('/')}] = {TYPES[store.node.dtype]}({w.row(store.value)});")


def _open_rows(w: Writer, scratches: int, *, parallel: bool) -> None:
    """Emit what comes before the rows, and the heads of the loops over them."""
    kernel = w.kernel
    w.shares_row = parallel and not kernel.outer and kernel.passes == 1 and not kernel.in_order
    _open_team(w, parallel=parallel and bool(kernel.outer))
    if scratches:
        w.pieces.add("scratch")
        w.emit(f"float* const memory = scratch({scratches} * (n + 64));")
    if parallel and kernel.outer:
        w.emit(f"#pragma omp for collapse({len(kernel.outer)}) schedule(static)")
    for variable, extent in kernel.outer:
        w.emit(f"for (int64_t {variable} = 0; {variable} < {extent.text('/')}; ++{variable}) {{")
        w.indent += "  "


def _pass_of(w: Writer, phase: int) -> Pass | None:
    """Return what a pass computes, if anything."""
    kernel = w.kernel
    reductions, stores = _needs(kernel, phase)
    kept = [e for e in kernel.exprs() if e.number in w.slots and e.phase == phase and w.slots[e.number].index >= 0]
    return Pass(phase, reductions, stores, kept) if reductions or stores else None


def _write_pass(w: Writer, phase: int) -> None:
    kernel, over = w.kernel, _pass_of(w, phase)
    if over is None:
        return
    cut = any(_uses_cat(value, w, phase) for value in over.values)
    over.breaks = find_breaks(kernel, kernel.exprs()) if cut else [kernel.one - 1, kernel.length]
    w.scans = {}
    if kernel.runs:
        _write_runs(w, over)
    else:
        _prepare(w, over)
        for reduction in over.reductions:
            _write_accumulator(w, reduction)
        for segment in over.segments:
            write_sweep(w, over, segment)
    for reduction in over.reductions:
        if reduction.data != "sum":
            name = w.names[reduction.number]
            kind = "int64_t" if reduction.data in PLACES else "double"
            w.emit(f"const {kind} {name} = {name}_part.fold();")


def _prepare(w: Writer, over: Pass) -> None:
    for segment in over.segments:
        for value in over.values:
            w.prepare(value, set(), over.phase, segment, over.breaks)


def _write_runs(w: Writer, over: Pass) -> None:
    """Emit a pass over a row of several runs: one sweep where all that it needs allows that, else one for each run."""
    kernel = w.kernel
    w.joined = is_one_run(kernel, over.stores, over.values)
    in_order = any(r.data in PLACES for r in over.reductions)
    if len(over.segments) > 1 or (in_order and not w.joined):
        raise Unsupported("a cat of runs, or places in one of them")
    seen: set[int] = set()
    for value in over.values:
        w.prepare_outside(value, seen)
    for reduction in over.reductions:
        _write_accumulator(w, reduction)
    before = (dict(w.names), dict(w.vectors), dict(w.pointers))
    if w.joined:
        _open_loop(w, "{")
        w.emit(f"const int64_t whole = n * {product((size for _, size in kernel.runs), kernel.one).text('/')};")
        w.block = ("0", "whole")
    else:
        for variable, extent in kernel.runs:
            _open_loop(w, f"for (int64_t {variable} = 0; {variable} < {extent.text('/')}; ++{variable}) {{")
    _open_stores(w, over.stores)
    _prepare(w, over)
    write_sweep(w, over, None)
    for _ in range(1 if w.joined else len(kernel.runs)):
        _close_loop(w)
    w.names, w.vectors, w.pointers = before
    w.block, w.joined = None, False


def _write_accumulator(w: Writer, reduction: Expr) -> None:
    name = w.names[reduction.number] = w.unique_name(reduction.hint)
    if reduction.data == "sum":
        w.pieces.add("Sum")
        w.emit(f"Sum{w.times or '<>'} {name}_part;")
        w.emit(f"double {name} = 0;")
    elif reduction.data in PLACES:
        w.pieces.add("Place")
        w.emit(f"Place<{-1 if reduction.data == 'argmin' else 1}> {name}_part;")
    else:
        w.pieces.add("Max")
        sign, nans = -1 if reduction.data == "min" else 1, "false" if reduction.data == "peak" else "true"
        w.emit(f"Extremum<{sign}, {nans}> {name}_part;")


def _uses_cat(expr: Expr, w: Writer, phase: int) -> bool:
    if not expr.full or (expr.number in w.slots and expr.phase < phase):
        return False
    return expr.op == "cat" or any(_uses_cat(a, w, phase) for a in expr.args)
