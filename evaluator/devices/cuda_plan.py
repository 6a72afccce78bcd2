"""Plan the distinct calls of a timed CUDA round and the replays of its graph: plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

ROUND_US = 6_000.0  # a round's fixed cost is 0.2 to 0.45 ms on an H200: more than a tenth cannot be taken off
MEMORY_LIMIT_BYTES = 16 * 1024**3
MAX_CALLS = 128
MAX_REPLAYS = 2_000
_L2_MULTIPLE = 4


@dataclass(frozen=True, slots=True)
class CallSize:
    """Bytes that one call touches: fresh inputs, outputs, and the parameters of its module."""

    inputs: int
    outputs: int
    parameters: int = 0


@dataclass(frozen=True, slots=True)
class Rotation:
    """`calls` distinct input sets in a graph, over `instances` copies of the module (call k uses copy k % instances).

    `cold`: a rotation's bytes exceed the L2 several times, so that nothing is found there again.
    """

    calls: int
    instances: int
    cold: bool


def plan_rotation(size: CallSize, l2_bytes: int, limit_bytes: int = MEMORY_LIMIT_BYTES) -> Rotation:
    """Plan enough calls that their bytes exceed the L2 four times over, within `limit_bytes` of device memory.

    A call's input lies in device memory twice (judge's copy, exported copy) and its output up to six times
    (Candidate's, snapshot, a float64 expectation at four times the width). Parameters count once per instance.
    """
    wanted_bytes = _L2_MULTIPLE * l2_bytes
    fresh = max(1, size.inputs + size.outputs)
    held = max(1, 2 * size.inputs + 6 * size.outputs)
    instances = 1
    if size.parameters > fresh:  # weights dominate: rotate over copies of the module
        copies = math.ceil(wanted_bytes / (size.parameters + fresh))
        instances = max(1, min(copies, limit_bytes // 2 // size.parameters, 16))
    calls = math.ceil(wanted_bytes / (fresh + size.parameters if instances > 1 else fresh))
    calls = max(2, min(calls, MAX_CALLS, limit_bytes // held))
    calls = max(instances, math.ceil(calls / instances) * instances) if instances > 1 else calls
    touched = calls * fresh + instances * size.parameters
    return Rotation(calls=calls, instances=instances, cold=touched >= 2 * l2_bytes)


def plan_replays(rotation_us: float, round_us: float = ROUND_US) -> int:
    """Return the replays of a graph that takes `rotation_us` in a round of `round_us`."""
    if not (math.isfinite(rotation_us) and rotation_us > 0):
        return 1
    return max(1, min(MAX_REPLAYS, math.ceil(round_us / rotation_us)))
