"""Operations and sizes over which the judge's clock is measured: launch-bound, memory-bound, compute-bound.

Each is judged against itself: the Candidate makes the very call of the reference.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Evaluation, Problem

THROUGH = ("judge", "confirm")
_SIZES = {
    DeviceKind.CPU: (4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20),
    DeviceKind.CUDA: (4 << 10, 256 << 10, 4 << 20, 64 << 20, 512 << 20),
}
_MOST_PRODUCT_BYTES = {DeviceKind.CPU: 1 << 20, DeviceKind.CUDA: 64 << 20}
_ROW = 16384

_PROBLEM = """import torch

WORKLOADS = [{{"name": "{name}", "rows": {rows}, "width": {width}, "device": "{device}"}}]


class Model(torch.nn.Module):
    def forward(self, {parameters}):
        return {call}


def get_inputs(rows={rows}, width={width}):
    return [{inputs}]


def get_init_inputs():
    return []
"""
_CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, {parameters}):
        return {call}


# {remark}
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """A call of torch, with the inputs that it takes."""

    name: str
    call: str
    inputs: tuple[str, ...]

    def shape(self, output_bytes: int) -> tuple[int, int]:
        """Return rows and width of a float32 output of so many bytes."""
        elements = output_bytes // 4
        if self.name == "product":
            side = round(elements**0.5)
            return side, side
        width = min(_ROW, elements)
        return elements // width, width

    def problem(self, output_bytes: int, kind: DeviceKind) -> Problem:
        rows, width = self.shape(output_bytes)
        parameters = ", ".join("xyz"[: len(self.inputs)])
        name = f"{self.name}-{output_bytes}"
        source = _PROBLEM.format(
            name=name, rows=rows, width=width, device=kind, parameters=parameters,
            call=self.call, inputs=", ".join(self.inputs),
        )  # fmt: skip
        return read_problem(source, name)

    def candidate(self, remark: str) -> Candidate:
        parameters = ", ".join("xyz"[: len(self.inputs)])
        source = _CANDIDATE.format(parameters=parameters, call=self.call, remark=remark)
        return Candidate(source=source, language=detect(source), proposer="bench")


_DRAW = "torch.randn(rows, width)"
OPERATIONS = {
    one.name: one
    for one in (
        Operation("add", "x + y", (_DRAW, _DRAW)),
        Operation("softmax", "torch.softmax(x, -1)", (_DRAW,)),
        Operation("product", "x @ y", (_DRAW, _DRAW)),
    )
}


def cases(kind: DeviceKind) -> list[tuple[str, int]]:
    """Return (operation, output bytes), the sizes in turn so that a short budget meets every operation."""
    return [
        (name, size)
        for size in _SIZES[kind]
        for name in OPERATIONS
        if name != "product" or size <= _MOST_PRODUCT_BYTES[kind]
    ]


def told(found: Evaluation, through: str, output_bytes: int) -> dict[str, Any]:
    """Return the part of an Evaluation that is recorded: the ratio to the same call, and the plain loop's times."""
    ratio = found.speedup("champion" if through == "confirm" else "eager")
    entry: dict[str, Any] = {"through": through, "bytes": output_bytes, "verdict": str(found.verdict)}
    if ratio is None:
        return {**entry, "reason": found.reason}
    (measured,) = found.measurements
    (opinion,) = found.evidence.get("third_opinion", {"": {}}).values()
    return {
        **entry,
        "ratio": ratio.value,
        "low": ratio.interval.low,
        "high": ratio.interval.high,
        "official_us": measured.median_us,
        "promote": found.evidence.get("promote", False),
        "lowered": [str(one) for one in measured.adjustments],
        "third_opinion": opinion,
    }


def summary(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how often intervals contain 1 in every band of sizes, and official times over plain loops'."""
    ours = [e for e in entries if e.get("kind") == "grid" and "ratio" in e]
    found: dict[str, Any] = {}
    for through in THROUGH:
        for size in sorted({e["bytes"] for e in ours}):
            some = [e for e in ours if (e["through"], e["bytes"]) == (through, size)]
            if some:
                found[f"{through} {size}"] = {
                    "times": len(some),
                    "intervals_with_1": sum(e["low"] <= 1 <= e["high"] for e in some),
                    "median_ratio": round(statistics.median(e["ratio"] for e in some), 4),
                    "median_half_width": round(statistics.median((e["high"] - e["low"]) / 2 for e in some), 4),
                    "promotions": sum(e["promote"] for e in some),
                }
    return {**found, "official_over_plain": _over_plain(ours)} if found else {}


def _over_plain(entries: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the median of official time over the plain loop's, by operation and size; where a profiler told it, over
    the kernels' device time as well."""
    ratios: dict[str, list[float]] = {}
    for entry in entries:
        for name, one in entry["third_opinion"].items():
            place = f"{entry['operation']} {entry['bytes']} {name}"
            ratios.setdefault(place, []).append(one["official_us"] / one["plain_us"])
            if one.get("kernels_us"):
                ratios.setdefault(f"{place} kernels", []).append(one["official_us"] / one["kernels_us"])
    return {place: round(statistics.median(some), 3) for place, some in ratios.items()}
