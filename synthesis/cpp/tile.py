"""Transpose what lies across the rows of a kernel: tile by tile, so that every line of the cache is read once."""

from __future__ import annotations

from dataclasses import dataclass

from synthesis.cpp.row import Writer
from synthesis.expr import INNER, Expr
from synthesis.graph.sizes import Affine, Size
from synthesis.kernel import Kernel

LEAST = 8  # rows, and elements of a row: fewer are gathered one by one
LONGEST = 1 << 15  # elements of rows that a tile holds whole
PITCH = "(n + 16)"  # from one whole row to the next: no power of two, which few lines of the cache would share


@dataclass(frozen=True, slots=True)
class Tiles:
    """The loops around a kernel's rows: `apart` ones, and `lane`, along which what `turned` loads read is contiguous.

    With `blocked`, a tile is a part of its rows; else it holds them whole, for several passes.
    """

    apart: tuple[tuple[str, Size], ...]
    lane: tuple[str, Size]
    turned: tuple[Expr, ...]
    blocked: bool

    def memory(self) -> list[str]:
        """Return the floats of scratch memory for each of the tiles that hold whole rows."""
        return [] if self.blocked else [f"TILE * {PITCH}"] * len(self.turned)


def find_tiles(kernel: Kernel) -> Tiles | None:
    """Return the loads that are better transposed than gathered; None where all are along the rows."""
    exprs = kernel.exprs()
    if max(kernel.length.values) < LEAST or kernel.runs or any(e.op == "cat" for e in exprs):
        return None
    across = [e for e in exprs if e.op == "load" and e.data[0].dtype == "float32" and _is_across(e.data[1])]
    turned = {
        loop: tuple(e for e in across if not e.data[2] and _is_one(e.data[1].coefficient(loop[0])))
        for loop in kernel.outer
        if max(loop[1].values) >= LEAST
    }
    lane = max(turned, key=lambda loop: len(turned[loop]), default=None)
    if lane is None or not turned[lane]:
        return None
    apart = tuple(loop for loop in kernel.outer if loop is not lane)
    blocked = not kernel.in_order
    return Tiles(apart, lane, turned[lane], blocked) if blocked or max(kernel.length.values) <= LONGEST else None


def _is_across(offset: Affine) -> bool:
    step = offset.coefficient(INNER)
    return step is not None and not step.equals(1)


def _is_one(step: Size | None) -> bool:
    return step is not None and step.equals(1)


def fill_tiles(w: Writer, tiles: Tiles, before: list[str]) -> list[str]:
    """Emit the tiles and their transposition, and return their names. Whole rows lie in memory, behind what `before`
    takes."""
    w.pieces.add("transpose")
    names = [w.unique_name(f"{load.data[0].name}_tile") for load in tiles.turned]
    for number, (name, load) in enumerate(zip(names, tiles.turned, strict=True)):
        node, offset, _ = load.data
        step = offset.coefficient(INNER).text("/")
        rest = offset.without(INNER).without(tiles.lane[0])
        start = (
            f"{node.name} + {rest.text('/')} + first"
            if rest.terms or not rest.const.equals(0)
            else f"{node.name} + first"
        )
        if tiles.blocked:
            w.emit(f"alignas(64) float {name}[TILE * TILE];")
            w.emit(f"transpose({start} + begin * ({step}), {step}, end - begin, width, {name}, TILE);")
            continue
        w.emit(f"float* const {name} = {' + '.join(['memory', *before, *tiles.memory()[:number]])};")
        w.emit(f"transpose({start}, {step}, n, width, {name}, {PITCH});")
    return names


def open_tiles(w: Writer, tiles: Tiles, names: list[str]) -> None:
    """Emit where row `i` begins in each tile."""
    for tile, load in zip(names, tiles.turned, strict=True):
        name = w.pointers[load.number] = w.unique_name(f"{load.data[0].name}_row")
        w.emit(f"const float* const {name} = {tile} + i * {'TILE' if tiles.blocked else PITCH};")
        w.tiled[load.number] = f"{name} + j - begin" if tiles.blocked else f"{name} + j"
