"""The share of the memory roofline that a Champion attains, if it is known reliably enough to end a Run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from evaluator.types import DeviceKind, Evaluation, Workload, WorkloadFacts

MIN_WRITTEN_SHARE = 0.25
"""Reads stream faster than a copy: with a smaller share of writes, a copy's rate is no bound."""
MAX_SHARE = 1.02
"""A kernel that beats the floor by more than noise shows that the floor is wrong."""

_TENSOR = re.compile(r"(\w+) \[([\d, ]*)\]")
_BITS = re.compile(r"(?:bool|(?:b?float|u?int|complex)(\d+)).*")


def attained(evaluation: Evaluation, workloads: Sequence[Workload], facts: Iterable[WorkloadFacts]) -> float | None:
    """Return the weighted geometric mean over Workloads of floor / time; None if a floor is unknown or crude.

    `evaluation` is the official measurement (a confirmation). A floor is the compulsory bytes at the rate of a plain
    copy. It is crude on a CPU (one core's copy is no bound: caches hold more, streaming stores need less), if little
    is written, if arithmetic at the rate of a large matrix product takes longer, and if a kernel beat it.
    """
    if evaluation.device is None or evaluation.device.kind is not DeviceKind.CUDA:
        return None
    known = {fact.workload: fact for fact in facts}
    weights = {workload.name: workload.weight for workload in workloads if not workload.held_out}
    logs: list[tuple[float, float]] = []
    for one in evaluation.measurements:
        fact = known.get(one.workload)
        if one.floor_us is None or fact is None or one.workload not in weights or _is_crude(fact, one.floor_us):
            return None
        share = one.floor_us / one.median_us
        if not 0 < share <= MAX_SHARE:
            return None
        logs.append((weights[one.workload], math.log(share)))
    if not logs or len(logs) < len(weights):
        return None
    return min(1.0, math.exp(sum(w * log for w, log in logs) / sum(w for w, _ in logs)))


def _is_crude(fact: WorkloadFacts, floor_us: float) -> bool:
    written = [_bytes(text) for text in fact.outputs]
    if any(size is None for size in written):
        return True
    if sum(size for size in written if size is not None) < MIN_WRITTEN_SHARE * fact.bytes_moved:
        return True
    if not fact.flops:
        return False
    return not fact.matmul_gflops or fact.flops / (fact.matmul_gflops * 1e3) > floor_us


def _bytes(text: str) -> float | None:
    """Return the size of "bfloat16 [16, 64]"."""
    found = _TENSOR.match(text)
    bits = _BITS.fullmatch(found[1]) if found is not None else None
    if found is None or bits is None:
        return None
    return math.prod(int(n) for n in found[2].split(",") if n.strip()) * (int(bits[1]) / 8 if bits[1] else 1)
