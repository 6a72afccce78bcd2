"""Names of the queues and of their kinds of Job. A nudge is the name of a queue with new work."""

from __future__ import annotations

from enum import StrEnum

from evaluator.types import DeviceKind

Nudge = str

CONTROL = "control"
PROPOSE = "propose"
BUILD = "build"
BUILD_CUDA = "build.cuda"


class JobKind(StrEnum):
    ADMIT = "admit"
    BASELINE = "baseline"
    ADVANCE = "advance"
    PROPOSE = "propose"
    BUILD = "build"
    JUDGE = "judge"
    CONFIRM = "confirm"
    WEBHOOK = "webhook"


def build_queue(kind: DeviceKind) -> str:
    """Return the queue that compiles for a device kind.

    Compiling needs the device's toolchain, and runs while the device times other Candidates.
    """
    return BUILD if kind is DeviceKind.CPU else BUILD_CUDA


def device_queue(kind: DeviceKind) -> str:
    """Return the queue of a device kind: "cpu", or "gpu.cuda"."""
    return "cpu" if kind is DeviceKind.CPU else f"gpu.{kind.value}"
