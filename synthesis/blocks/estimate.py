"""Rank the Configurations of products before any is timed.

A product of few rows is bound by reading its weights. Its least time becomes longer where too few bytes are under way,
where the last programs run alone, and with every step of every program, which waits and loads its rows again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from synthesis.blocks.product import Product
from synthesis.draft import Draft
from synthesis.graph.nodes import Node, Program
from synthesis.host import BLOCK
from synthesis.ranking import BYTES_PER_US, FULL_RATE_BYTES, LAUNCH_US, PROCESSORS, WARPS

SHARED_BYTES, ROOM = 227_000, 180_000  # of a multiprocessor; that a program takes for its steps, at most
# Fitted to looks on an H100: a step of one program after the other, and of each program of a multiprocessor; the last
# step, which nothing hides where all programs run at once; and multiprocessors without a program.
STEP_US, STEP_US_OF_PROGRAM, LAST_US_OF_BYTE, IDLE_POWER = 0.025, 0.015, 5e-5, 0.15
L2_BYTES_PER_US = 1.5e7


@dataclass(frozen=True, slots=True)
class Shape:
    """A product on one workload. `width` bytes of all weights belong to one column and one element of the depth (of a
    part of it, where weights are packed)."""

    rows: int
    columns: int
    depth: int
    width: int
    item_bytes: int
    group: int
    parts: int
    vector: bool  # one row may be summed without a tensor core


@dataclass(frozen=True, slots=True)
class Launch:
    """The programs, loads and steps of a Configuration on a Shape."""

    programs: int
    bytes_of_step: int  # of weights
    bytes_of_row: int  # of the other operand
    rows_kept: int
    steps: int
    stages: int
    warps: int


def shapes_of(program: Program) -> list[list[Shape]]:
    """Return, for each workload, the products of few rows that blocks compute."""
    found: dict[int, Product] = {}

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            if node.fn == BLOCK and isinstance(node.data, Product) and not node.data.large:
                found[id(node)] = node.data
            for child in node.inputs:
                visit(child)

    seen: set[int] = set()
    for output in program.outputs:
        visit(output)
    return [[_shape(block, number) for block in found.values()] for number in range(len(program.one.values))]


def _shape(block: Product, workload: int) -> Shape:
    group = block.steps.group
    return Shape(
        rows=block.rows.values[workload],
        columns=block.columns.values[workload],
        depth=block.depth.values[workload],
        width=block.width,
        item_bytes=4 if block.root.dtype == "float32" else 2,
        group=0 if group is None else group.values[workload],
        parts=block.steps.parts,
        vector=block.single,
    )


def launch_of(shape: Shape, configuration: Mapping[str, Any]) -> Launch:
    """Follow `_product` and `_vector` of a Candidate."""
    if shape.rows == 1 and shape.vector and configuration.get("VECTOR"):
        step = min(configuration["VECTOR_DEPTH"], _power_of_two(shape.depth))
        stages = max(1, min(configuration["VECTOR_STAGES"], ROOM // (configuration["LANES"] * step * 4) + 1))
        moved = configuration["LANES"] * step * shape.width
        steps, programs = math.ceil(shape.depth / step), math.ceil(shape.columns / configuration["LANES"])
        return Launch(programs, moved, step * shape.item_bytes, 1, steps, stages, configuration["VECTOR_WARPS"])
    together = min(64, max(16, _power_of_two(shape.rows)))
    step = shape.group // shape.parts or min(configuration["DEPTH"], _power_of_two(shape.depth // shape.parts))
    if not shape.group:
        step = min(step, max(16, 2048 * configuration["PRODUCT_WARPS"] // together))
        step = min(step, 64) if shape.item_bytes == 4 else step
    by_rows, block = math.ceil(shape.rows / together), configuration["COLUMNS"]
    while block > 16 and math.ceil(shape.columns / block) * by_rows < configuration["FILL"]:
        block //= 2
    unroll = configuration.get("UNROLL", 1) if shape.group else 1
    moved, of_rows = block * shape.width * unroll * step, shape.parts * shape.item_bytes * unroll * step
    stages = max(1, min(configuration["PRODUCT_STAGES"], ROOM // (moved + together * of_rows) + 1))
    steps = math.ceil(shape.depth / shape.parts / step / unroll)
    programs = math.ceil(shape.columns / block) * by_rows
    return Launch(programs, moved, of_rows, together, steps, stages, configuration["PRODUCT_WARPS"])


def estimate_us(shape: Shape, configuration: Mapping[str, Any]) -> float:
    """Return about how long a product takes."""
    made = launch_of(shape, configuration)
    buffers = max(1, made.stages - 1)
    kept = (made.bytes_of_step + made.rows_kept * made.bytes_of_row) * buffers
    at_once = PROCESSORS * max(1, min(SHARED_BYTES // max(1, kept), WARPS // made.warps, 16))
    of_program = made.bytes_of_step * (buffers if made.stages > 1 else 0.5)
    left = made.programs % at_once
    shares = [(made.programs - left, at_once), (left, left)]  # of programs: whole waves, and the last one
    waves = sum(part / made.programs / _rate(count * of_program) for part, count in shares if part)
    idle: float = max(1.0, PROCESSORS / made.programs) ** IDLE_POWER
    moved: float = shape.columns * shape.depth / shape.parts * shape.width
    turns = max(1.0, made.programs / at_once)
    again = made.programs * made.steps * min(made.rows_kept, shape.rows) * made.bytes_of_row
    overhead = made.steps * (STEP_US * turns + STEP_US_OF_PROGRAM * made.programs / PROCESSORS)
    overhead += LAST_US_OF_BYTE * made.bytes_of_step / turns + again / L2_BYTES_PER_US
    return LAUNCH_US + moved / BYTES_PER_US * waves * idle + overhead


def _rate(bytes_under_way: float) -> float:
    """Return the share of memory's rate that so many bytes under way reach."""
    return min(1.0, bytes_under_way / (PROCESSORS * FULL_RATE_BYTES))


def ranked_products(drafts: Iterable[Draft], workloads: list[list[Shape]]) -> list[Draft]:
    """Return Drafts in the order of their estimates; those that launch the same kernels as an earlier one come last.

    The order stays where there are no products.
    """
    listed = list(drafts)
    if not any(workloads) or not all("COLUMNS" in d.configuration for d in listed):
        return listed

    def cost(draft: Draft) -> float:
        totals = [sum(estimate_us(s, draft.configuration) for s in shapes) for shapes in workloads]
        return sum(math.log(total) for total in totals if total)

    seen: set[tuple[Any, ...]] = set()
    first: list[Draft] = []
    rest: list[Draft] = []
    for draft in sorted(listed, key=cost):
        launches = [launch_of(s, draft.configuration) for shapes in workloads for s in shapes]
        made = (*launches, draft.configuration.get("BESIDE"))
        (rest if made in seen else first).append(draft)
        seen.add(made)
    return [*first, *rest]


def _power_of_two(number: int) -> int:
    return max(16, 1 << max(0, number - 1).bit_length())
