"""The least time that a Workload can take: by its bytes, its operations, and a kernel that does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluator.types import BaselineReport, DeviceKind, WorkloadFacts

LAUNCH_US = 1.3
"""An empty kernel as a node of a CUDA graph, on an H100 and on an H200."""
_BEYOND = 1.2
"""The rate of matrix products moves by a fifth with what ran just before."""
SKINNY = 64.0
"""Fewer operations a byte than this: a product waits for its weights, whatever its tiles."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time of one Workload, and what sets it: "memory", "arithmetic" or "an empty kernel's time"."""

    us: float
    bound: str


def floors(facts: Sequence[WorkloadFacts], kind: DeviceKind, baseline: BaselineReport | None) -> dict[str, Floor]:
    """Return the floor of each Workload with a known one."""
    multiplies = matmul_gflops(facts, baseline) is not None
    return {fact.workload: _floor(fact, kind, multiplies=multiplies) for fact in facts if fact.floor_us}


def matmul_gflops(facts: Sequence[WorkloadFacts], baseline: BaselineReport | None) -> float | None:
    """Return the device's rate of matrix products; None if a Baseline is faster than that, so that it was disturbed."""
    rated = [fact for fact in facts if fact.flops and fact.matmul_gflops]
    timed = {time.workload for time in baseline.times} if baseline is not None else set()
    for fact in rated:
        if baseline is not None and fact.workload in timed:
            least_us = (fact.flops or 0) / ((fact.matmul_gflops or 1.0) * 1e3)
            if least_us > _BEYOND * baseline.fastest(fact.workload).median_us:
                return None
    return next((fact.matmul_gflops for fact in facts if fact.matmul_gflops), None)


def launch_us(kind: DeviceKind) -> float | None:
    """Return the time of an empty kernel, None where there are no launches."""
    return LAUNCH_US if kind is DeviceKind.CUDA else None


def skinny(facts: Iterable[WorkloadFacts]) -> bool:
    """Return True if every Workload has few operations for its bytes."""
    known = [fact.flops / fact.bytes_moved for fact in facts if fact.flops and fact.bytes_moved]
    return bool(known) and max(known) < SKINNY


def _floor(fact: WorkloadFacts, kind: DeviceKind, *, multiplies: bool) -> Floor:
    candidates = [Floor(fact.floor_us or 0.0, "memory")]
    if multiplies and fact.flops and fact.matmul_gflops:
        candidates.append(Floor(fact.flops / (fact.matmul_gflops * 1e3), "arithmetic"))
    if (launch := launch_us(kind)) is not None:
        candidates.append(Floor(launch, "an empty kernel's time"))
    return max(candidates, key=lambda one: one.us)
