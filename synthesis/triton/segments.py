"""Write a kernel that holds whole rows and reduces their segments too: tiles of rows by segments by elements."""

from __future__ import annotations

from synthesis.errors import Unsupported
from synthesis.expr import INNER, SEGMENT, Expr
from synthesis.graph.nodes import QUANTISED
from synthesis.kernel import Kernel, Store
from synthesis.triton.fold import fold_constants
from synthesis.triton.kernel import ROW_INSIDE, TritonKernel, loop_lines, rows_of_kernel, run_of_kernel
from synthesis.triton.specialise import jit, needed_by_rows
from synthesis.triton.writer import IDENTITY, Writer, place_of

LONGEST = 32768


class SegmentWriter(Writer):
    """Values are [ROWS, 1, 1], [ROWS, SEGMENTS, 1] or [ROWS, SEGMENTS, BLOCK], and broadcast."""

    def load(self, expr: Expr, guard: str, other: str = "0") -> str:
        node, offset, chosen = expr.data
        if chosen:
            raise Unsupported("a gather in segments")
        names = {v for v, _ in offset.terms}
        mask = self.mask(names)
        once = all(v in names for v, _ in self.kernel.outer)
        hint = ", eviction_policy=EVICT" if expr.full and once else ""
        mask += f" & {guard}" if guard else ""
        text = f"tl.load({node.name}_ptr + {place_of(offset)}, mask={mask}, other={other}{hint})"
        return f"{text}.to({'tl.float32' if expr.type == 'f' else 'tl.int64'})" if expr.type != "b" else f"{text} != 0"

    def mask(self, names: set[str]) -> str:
        """Return the mask of what varies with these variables."""
        parts = ["row_inside"] if names - {INNER, SEGMENT} else []
        parts += ["segment_inside"] if SEGMENT in names else []
        parts += ["column_inside"] if INNER in names else []
        return " & ".join(parts) or "zero == 0.0"

    def text(self, expr: Expr, guard: str) -> str:
        if expr.op == "segment":
            return self.over(expr, 2, self.guarded(expr))
        return super().text(expr, guard)

    def reduce(self, expr: Expr) -> str:
        part = self.assign(f"{expr.hint}_of_segment", self.over(expr, 2, self.guarded(expr)))
        return self.over(expr, 1, part)

    def guarded(self, expr: Expr) -> str:
        return f"tl.where(inside, {self.value(expr.args[0])}, {IDENTITY[expr.data]})"

    def over(self, expr: Expr, axis: int, block: str) -> str:
        if expr.data in ("max", "min"):
            self.pieces.add(f"_{expr.data}")
            return f"tl.reduce({block}, {axis}, _{expr.data}, keep_dims=True)"
        return f"tl.{'max' if expr.data == 'peak' else 'sum'}({block}, axis={axis}, keep_dims=True)"


def write_segments(kernel: Kernel, *, exact: bool) -> TritonKernel:
    """Write a kernel of rows with segments. Raise Unsupported."""
    segments = kernel.segments
    assert segments is not None
    if max(a * b for a, b in zip(segments.values, kernel.length.values, strict=True)) > LONGEST:
        raise Unsupported("rows too long for registers")
    kernel = kernel if exact else fold_constants(kernel)
    w = SegmentWriter(kernel, "held", exact)
    sizes = kernel.symbols()
    outputs = list({id(s.node): s.node for s in kernel.stores}.values())
    pointers = [f"{n.name}_ptr" for n in [*kernel.loads(), *outputs]]
    w.used |= {INNER, SEGMENT, "row", "row_count", "n", "segments", "program", "rest", "run", "inside", "zero"}
    w.used |= {"row_inside", "segment_inside", "column_inside", *sizes, *(v for v, _ in kernel.outer), *pointers}
    rows = rows_of_kernel(kernel)
    lines = [
        f"row_count = {rows.text()}",
        f"segments = {segments.text()}",
        f"n = {kernel.length.text()}",
        "zero = tl.zeros([1, 1, 1], tl.float32)",
        "program = tl.program_id(0).to(INDEX)",
        "row = program * ROWS + tl.arange(0, ROWS)[:, None, None]",
        f"{SEGMENT} = tl.arange(0, SEGMENTS)[None, :, None]",
        f"{INNER} = tl.arange(0, BLOCK)[None, None, :]",
        f"row_inside = {ROW_INSIDE.format(shape='[ROWS, 1, 1]')}",
        f"segment_inside = {SEGMENT} < segments",
        f"column_inside = {INNER} < n",
        "inside = row_inside & segment_inside & column_inside",
    ]
    lines += loop_lines(kernel)
    for text in lines:
        w.emit(text)
    for store in kernel.stores:
        _store(w, store)
    name = f"{kernel.name}_segmented"
    constants = ", ".join(f"{c}: tl.constexpr" for c in ("ROWS", "SEGMENTS", "BLOCK", "EVEN", "EVICT", "INDEX"))
    needed = needed_by_rows(kernel)
    text = "\n".join([jit(sizes, needed), f"def {name}({', '.join([*pointers, *sizes, constants])}):", *w.lines])
    run = run_of_kernel(kernel)
    return TritonKernel(
        name, "segmented", text, w.pieces, kernel.loads(), outputs, sizes, rows, kernel.length, pointers, run, needed
    )  # fmt: skip


def _store(w: SegmentWriter, store: Store) -> None:
    names = {v for v, _ in store.offset.terms}
    shape = f"[ROWS, {'SEGMENTS' if SEGMENT in names else 1}, {'BLOCK' if INNER in names else 1}]"
    value = w.quantised(store.value) if store.value.op in QUANTISED else w.value(store.value)
    if INNER not in names or not store.value.full:
        value = f"{value} + tl.zeros({shape}, {'tl.float32' if store.value.type == 'f' else 'tl.int64'})"
    mask = w.mask(names) if SEGMENT in names or INNER in names else "row_inside"
    place = place_of(store.offset) if w.kernel.outer else f"row * 0 + {place_of(store.offset)}"
    w.emit(f"tl.store({store.node.name}_ptr + {place}, {value}, mask={mask})")
