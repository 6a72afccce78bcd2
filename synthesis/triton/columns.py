"""Write kernels whose rows lie across memory: a program reduces a strip of neighbours, so that loads are contiguous.

A row is what a kernel reduces, such as the channels of one pixel. Its elements are apart, and what is next to each of
them in memory is one of the next row.
"""

from __future__ import annotations

from typing import Any

from synthesis.expr import INNER
from synthesis.graph.sizes import Affine, Size
from synthesis.kernel import Kernel
from synthesis.triton.parts import PART, PARTS
from synthesis.triton.specialise import bounds_of, needed
from synthesis.triton.writer import Writer

ROW_INSIDE = "tl.full([1, ROWS], True, tl.int1) if EVEN else row < width"
HELD: dict[str, list[Any]] = {
    "COLUMN_TILE": [8192, 4096, 16384, 2048],  # elements of a program
    "COLUMN_ELEMENTS": [32, 16, 8, 64],  # of a thread
    "MAX_COLUMN": [512, 256, 1024],  # longest row across memory that is held in registers
}
STREAMED: dict[str, list[Any]] = {
    "STRIP": [128, 256, 64, 512],  # neighbours of a program
    "STRIP_WARPS": [8, 4, 16],
    "STRIP_UNROLL": [16, 8, 32, 4],  # elements of a thread that are on their way at once
}
_TILE = """    vector = 16 // arguments[0].element_size() if width % 16 == 0 else 1
    warps = max(1, min(CONFIG["STRIP_WARPS"], triton.next_power_of_2(n) * strip // (32 * vector)))
    block = max(1, 32 * warps * vector // strip)
    unroll = max(1, min(CONFIG["STRIP_UNROLL"] // vector, n // block))
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "num_warps": warps}
    options |= {"UNROLL": unroll, "EVEN": width % strip == 0, "WHOLE": n % block == 0}"""
LAUNCH = {
    "columns": '''
def _columns(kernel, outer, width, n, *arguments):
    """Rows across memory, held whole in registers: a program for a strip of neighbours."""
    block = triton.next_power_of_2(n)
    strip = min(max(32, CONFIG["COLUMN_TILE"] // block), triton.next_power_of_2(width))
    while strip > 32 and outer * triton.cdiv(width, strip) < 2 * _processors(arguments[0].device):
        strip //= 2
    warps = max(1, min(32, strip * block // (32 * CONFIG["COLUMN_ELEMENTS"])))
    options = {"EVICT": CONFIG["EVICT"], "INDEX": _index(arguments), "num_warps": warps}
    options |= {"EVEN": width % strip == 0, "WHOLE": n == block}
    kernel[(outer * triton.cdiv(width, strip),)](*arguments, ROWS=strip, BLOCK=block, **options)
''',
    "columns_streamed": f'''
def _columns_streamed(kernel, outer, width, n, *arguments):
    """Rows across memory, block after block: a program for a strip of neighbours.

    Loads wait in registers: what is not aligned to 16 bytes could only be copied ahead element by element.
    """
    strip = min(CONFIG["STRIP"], triton.next_power_of_2(width))
    while strip > 32 and outer * triton.cdiv(width, strip) < 2 * _processors(arguments[0].device):
        strip //= 2
{_TILE}
    kernel[(outer * triton.cdiv(width, strip),)](*arguments, ROWS=strip, BLOCK=block, **options)
''',
    "columns_parts": f'''
def _columns_parts(kernel, outer, width, n, *arguments):
    """{PARTS} programs for a strip of rows across memory, each for a part of them."""
    strip = min(32, triton.next_power_of_2(width))
{_TILE}
    piece = triton.cdiv(triton.cdiv(n, block), {PARTS}) * block
    grid = (outer * triton.cdiv(width, strip), {PARTS})
    kernel[grid](*arguments, ROWS=strip, BLOCK=block, PIECE=piece, **options)
''',
}


def lane_of(kernel: Kernel) -> str | None:
    """Return the loop over rows whose steps are neighbours in memory, None where rows lie along memory."""
    places = [e.data[1] for e in kernel.exprs() if e.op == "load" and e.full]
    places = [p for p in [*places, *(s.offset for s in kernel.stores if s.full)] if p.without(INNER).terms]
    lanes = [v for v, _ in kernel.outer if places and all(_is_step(p, v) for p in places)]
    return lanes[-1] if lanes else None


def _is_step(place: Affine, variable: str) -> bool:
    step = place.coefficient(variable)
    return step is not None and step.equals(1)


def width_of(kernel: Kernel, lane: str) -> Size:
    return dict(kernel.outer)[lane]


def outer_of(kernel: Kernel, lane: str) -> Size:
    """Return how many strips there are for each one of a row of neighbours."""
    total = kernel.one
    for variable, extent in kernel.outer:
        total = total if variable == lane else total * extent
    return total


def needed_by_columns(kernel: Kernel, lane: str) -> set[str]:
    """Return the sizes that decide how a kernel of rows across memory loads and stores."""
    exprs = kernel.exprs()
    offsets = [e.data[1] for e in exprs if e.op == "load"] + [s.offset for s in kernel.stores]
    width = width_of(kernel, lane)
    found = needed(offsets, [width, *bounds_of(exprs)], [width], (lane, INNER))
    return set(kernel.symbols()) if found is None else found


def positions(w: Writer, start: str = "") -> None:
    """Emit the places in a row, whose steps are long here, and which of them there are."""
    w.emit(f"j = ({start}tl.arange(0, BLOCK)[:, None]).to(INDEX)")
    w.emit("column_inside = tl.full([BLOCK, 1], True, tl.int1) if WHOLE else j < n")


def head(w: Writer, lane: str) -> None:
    """Emit the rows and, unless they are streamed, the columns of this program."""
    w.emit(f"width = {width_of(w.kernel, lane).text()}")
    w.emit(f"n = {w.kernel.length.text()}")
    w.emit("strips = tl.cdiv(width, ROWS)")
    w.emit("program = tl.program_id(0).to(INDEX)")
    w.emit("row = (program % strips) * ROWS + tl.arange(0, ROWS)[None, :]")
    w.emit(f"row_inside = {ROW_INSIDE}")
    w.emit("row = row if EVEN else tl.minimum(row, width - 1)")
    w.emit("zero = tl.zeros([1, 1], tl.float32)")
    if w.mode == "columns":
        positions(w)
    else:
        w.emit("lanes = tl.arange(0, BLOCK)[:, None].to(INDEX)")
    w.emit(f"{lane} = row")
    rest, others = "program // strips", [loop for loop in w.kernel.outer if loop[0] != lane]
    for variable, extent in reversed(others[1:]):
        text = extent.text() if extent.text().isidentifier() else f"({extent.text()})"
        w.emit(f"rest = {rest}")
        w.emit(f"{variable} = rest % {text}")
        rest = f"rest // {text}"
    for variable, _ in others[:1]:
        w.emit(f"{variable} = {rest}")
    if w.mode == "columns_parts":
        w.emit(f"{PART} = tl.program_id(1).to(INDEX)")
        w.emit("begin = tl.program_id(1) * PIECE")
        w.emit("n = tl.minimum(n, begin + PIECE)")
        w.used |= {PART, "begin"}
    w.used |= {"width", "strips", "program", "rest"}
