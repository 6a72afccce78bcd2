"""Estimate what share of a plan's least time its library calls hold: a roofline with the cost of a launch."""

from __future__ import annotations

import re
from collections.abc import Iterable

from synthesis.blocks.block import MATMULS
from synthesis.graph.nodes import Node
from synthesis.graph.sizes import Size
from synthesis.host import BLOCK
from synthesis.kernel import Kernel
from synthesis.plan import Plan
from synthesis.ranking import BYTES_PER_US, ITEM_BYTES, LAUNCH_US

FLOPS_PER_US = {2: 6e8, 4: 5e7}  # by bytes of an element: tensor cores, and float32 without TF32
SDPA = "aten.scaled_dot_product_attention.default"


def library_calls(plan: Plan) -> list[Node]:
    """Return the steps that are left to libraries."""
    return [s for s in plan.steps if isinstance(s, Node) and s.kind == "library" and s.fn != BLOCK]


def told(plan: Plan, *, timed: bool = False) -> str:
    """Say how many operations are library calls and which; `timed`, about what share of the time they hold on a GPU,
    whose figures the roofline has."""
    calls = library_calls(plan)
    steps = [s for s in plan.steps if isinstance(s, Kernel) or s.kind == "library"]
    names = ", ".join(dict.fromkeys(c.fn.removeprefix("aten.").split(".")[0] for c in calls))
    held = f" that hold {100 * share(plan):.0f} % of the time" if timed else ""
    return f"{len(calls)} of {len(steps)} operations are library calls{held} ({names})"


def left_to_libraries(source: str) -> str:
    """Return what a Candidate's header says of library calls."""
    header = " ".join(line[2:] for line in source.splitlines() if line.startswith("# "))
    found = re.search(r"\d+ of \d+ operations are library calls [^)]*\)", header)
    return found.group() if found else ""


def share(plan: Plan) -> float:
    """Return about what share of the time library calls hold, the mean over the workloads."""
    calls = {id(c) for c in library_calls(plan)}
    steps = [s for s in plan.steps if isinstance(s, Kernel) or s.kind == "library"]
    shares = []
    for workload in range(len(plan.program.one.values)):
        times = [(id(s) in calls, _least_us(s, workload)) for s in steps]
        shares.append(sum(t for called, t in times if called) / max(1e-9, sum(t for _, t in times)))
    return sum(shares) / len(shares)


def _least_us(step: Kernel | Node, workload: int) -> float:
    if isinstance(step, Kernel):
        return LAUNCH_US + _bytes([*step.loads(), *(s.node for s in step.stores)], workload) / BYTES_PER_US
    moved = _bytes([*step.inputs, step], workload) / BYTES_PER_US
    rate = FLOPS_PER_US[4 if _item(step) >= 4 else 2]
    return LAUNCH_US + max(moved, _operations(step, workload) / rate)


def _operations(node: Node, workload: int) -> float:
    """Return the multiplications and additions of a matrix product, a convolution or an attention."""
    count = _count(node.shape, workload)
    shapes = [i.shape for i in node.inputs if i.rank >= 2]
    if node.fn in MATMULS or node.fn == "aten.addmm.default":
        return 2.0 * count * shapes[0][-1].values[workload] if shapes else 0.0
    if "conv" in node.fn and len(shapes) > 1:
        return 2.0 * count * _count(shapes[1][1:], workload)
    if node.fn == SDPA and len(shapes) > 1:
        return 4.0 * _count(shapes[0], workload) * shapes[1][-2].values[workload]
    return 0.0


def _bytes(nodes: Iterable[Node], workload: int) -> float:
    found = {id(n): n for n in nodes}
    return float(sum(_count(n.shape, workload) * _item(n) for n in found.values() if n.kind != "constant"))


def _item(node: Node) -> int:
    return ITEM_BYTES.get(node.dtype, 2)


def _count(shape: Iterable[Size], workload: int) -> int:
    total = 1
    for size in shape:
        total *= size.values[workload]
    return total
