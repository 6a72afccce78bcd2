"""Rank Configurations of row kernels before any is timed: a roofline with the bytes that are under way.

A multiprocessor reaches memory's full rate only with enough bytes requested and not yet there. How many that are
follows from the programs that fit (threads, registers), what each requests at once, and whether it goes on requesting
while it computes. To that come the passes over a row, registers that overflow, and a last wave that is not full. The
figures describe an H100 or H200; on other devices the order is as good as their likeness.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from synthesis.draft import Draft
from synthesis.graph.sizes import product
from synthesis.kernel import Kernel
from synthesis.plan import Plan
from synthesis.triton.kernel import online_pairs

PROCESSORS, REGISTERS, WARPS = 132, 65536, 64
BYTES_PER_US = 4.2e6
FULL_RATE_BYTES = 40_000  # under way, of a multiprocessor
L2_BYTES, L2_SPEED = 40e6, 2.5  # how much faster than memory a pass over what is still in L2 is
LAUNCH_US = 2.0
SHARED_BYTES = 226 * 1024  # that a program may have for what is on its way, statistics aside
ITEM_BYTES = {"float32": 4, "int32": 4, "mixed": 4, "int64": 8, "bool": 1, "int8": 1, "uint8": 1}
TUNABLES_OF = {
    "held": ("TILE", "ELEMENTS"),
    "looped": ("TILE", "ELEMENTS", "RESIDENT", "STAGES"),
    "streamed": ("BLOCK", "ELEMENTS", "STAGES"),
}
WORTH_A_LOOK = 1.5  # times the best estimate: another way to read rows may still be faster
LEAD = 4  # designs that are to differ, before the rest follows by rank


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one kernel on one workload. `passes` is how often a streamed row is read."""

    rows: int
    length: int
    item_bytes: int
    loads: int
    stores: int
    passes: int

    @property
    def aligned(self) -> bool:
        return self.length * self.item_bytes % 16 == 0

    @property
    def bytes_of_row(self) -> int:
        return self.length * self.item_bytes

    @property
    def bytes_in_tiles(self) -> int:
        """The bytes of a row that is loaded ahead, in tiles of a power of two."""
        return _power_of_two(self.length) * self.item_bytes * self.loads


def rows_of(plan: Plan) -> list[list[Rows]]:
    """Return, for each workload, the kernels that reduce rows."""
    count = len(plan.program.one.values)
    found: list[list[Rows]] = [[] for _ in range(count)]
    for step in plan.steps:
        if isinstance(step, Kernel) and any(e.op == "reduce" for e in step.exprs()):
            for number, rows in enumerate(found):
                rows.append(_rows(step, number))
    return found


def _rows(kernel: Kernel, workload: int) -> Rows:
    loads = [e for e in kernel.exprs() if e.op == "load" and e.full and e.data[1].without("j").terms]
    item = max((ITEM_BYTES.get(e.data[0].dtype, 2) for e in loads), default=4)
    rows: int = product((extent for _, extent in kernel.outer), kernel.one).values[workload]
    stores = sum(s.full for s in kernel.stores)
    passes = max(1, kernel.passes - len(online_pairs(kernel)))
    return Rows(rows, kernel.length.values[workload], item, max(1, len(loads)), stores, passes)


def estimate_us(rows: Rows, mode: str, configuration: Mapping[str, Any]) -> float:
    """Return about how long one kernel takes."""
    if mode == "either":
        mode = "held" if rows.length <= configuration["MAX_ROW"] else "streamed"
    whole = _power_of_two(rows.length)
    block = min(configuration["BLOCK"], whole) if mode == "streamed" else whole
    together = 1 if mode == "streamed" else min(max(1, configuration["TILE"] // block), _power_of_two(rows.rows))
    warps = max(1, min(32, together * block // (32 * configuration["ELEMENTS"])))
    of_thread = together * block / (32 * warps)
    registers = 24 + of_thread * (2 if mode == "streamed" else 1.25) * rows.loads
    spilled = max(0.0, registers - 255) / registers
    resident = max(1, min(32, WARPS // warps, int(REGISTERS / (min(255, registers) * 32 * warps))))
    stages = configuration.get("STAGES", 1) if mode != "held" else 1
    if mode == "looped":
        resident = min(resident, configuration["RESIDENT"], max(1, int(200_000 / (together * block * 2 * stages))))
    tile = together * min(block, rows.length) * rows.item_bytes * rows.loads
    # What is copied ahead must be copied 4 bytes at once at least: unaligned rows wait for every block.
    ahead = stages - 1 if rows.aligned else 0
    under_way: float = resident * tile * (0.6 + ahead)
    overhead: float = (1.0 if rows.aligned else 1.25 + 0.25 * (stages > 1)) * (1.03 if mode == "looped" else 1.0)
    programs = math.ceil(rows.rows / together)
    at_once = resident * PROCESSORS
    waves = programs / at_once
    tail: float = math.ceil(waves) / waves
    if mode != "looped":
        tail = 1 + (tail - 1) / 2  # a program that ends makes room for the next at once
    again = 1.0 if at_once * together * rows.bytes_of_row > L2_BYTES else 1 / L2_SPEED
    passes = 1 + (rows.passes - 1) * again if mode == "streamed" else 1.0
    moved: float = rows.rows * rows.bytes_of_row * (rows.loads * passes + rows.stores) * (1 + 4 * spilled)
    rate: float = BYTES_PER_US * min(1.0, under_way / FULL_RATE_BYTES)
    return LAUNCH_US + moved / rate * overhead * min(tail, 2.0)


def ranked(drafts: Iterable[tuple[str, Draft]], workloads: list[list[Rows]]) -> list[Draft]:
    """Return Drafts (each with its mode) in the order of their estimates, the first LEAD unlike each other.

    The order stays where a plan has no rows.
    """
    listed = list(drafts)
    if not listed or not any(workloads):
        return [draft for _, draft in listed]

    def cost(entry: tuple[str, Draft]) -> float:
        mode, draft = entry
        totals = [sum(estimate_us(rows, mode, draft.configuration) for rows in kernels) for kernels in workloads]
        return sum(math.log(total) for total in totals)

    costs = [cost(entry) for entry in listed]
    left = sorted(range(len(listed)), key=costs.__getitem__)
    designs = [_design(*entry, workloads) for entry in listed]
    worst = costs[left[0]] + len(workloads) * math.log(WORTH_A_LOOK)
    lead: list[int] = []
    for number in left:  # each way to read rows at its best
        if costs[number] <= worst and all(designs[number]["mode"] != designs[other]["mode"] for other in lead):
            lead.append(number)
    for number in left:
        if len(lead) < LEAD and all(_unlike(designs[number], designs[other]) for other in lead):
            lead.append(number)
    return [listed[number][1] for number in (*lead, *(n for n in left if n not in lead))]


def _design(mode: str, draft: Draft, workloads: list[list[Rows]]) -> dict[str, Any]:
    """Return what a Draft does on the workloads at hand: its mode, and the Tunables that count in it."""
    configuration: dict[str, Any] = dict(draft.configuration)
    if mode == "either":
        short = {rows.length <= configuration["MAX_ROW"] for kernels in workloads for rows in kernels}
        mode = "held" if short == {True} else "streamed" if short == {False} else mode
    names = TUNABLES_OF.get(mode, tuple(configuration))
    return {"mode": mode} | {name: configuration[name] for name in names}


def _unlike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two designs differ in more than one Tunable's next value."""
    if one["mode"] != other["mode"]:
        return True
    changed = [(value, other[name]) for name, value in one.items() if value != other[name]]
    return len(changed) > 1 or any(max(pair) > 2 * min(pair) for pair in changed)


def _power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()
