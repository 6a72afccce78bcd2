"""Names of queues and of the one task. A message says "there is work on queue Q"; the work itself is a database row."""

from __future__ import annotations

from evaluator.types import DeviceKind

TASK_WORK = "warpwright.work"
"""The Celery task `work(queue)`: claim rows of that queue until none is left."""

CONTROL = "control"
PROPOSE = "propose"
BUILD = "build"
CPU = "cpu"
GPU_PREFIX = "gpu."
CUDA = GPU_PREFIX + DeviceKind.CUDA.value
BUILD_CUDA = "build." + DeviceKind.CUDA.value

BUILDS = {BUILD: DeviceKind.CPU, BUILD_CUDA: DeviceKind.CUDA}
"""The device kinds that the queues of builds compile for."""

DEVICES = {CPU: DeviceKind.CPU, CUDA: DeviceKind.CUDA}

QUEUES = (CONTROL, PROPOSE, BUILD, BUILD_CUDA, CPU, CUDA)


def device_queue(kind: DeviceKind | str) -> str:
    """Return the queue of Jobs that need a device of this kind: "cpu", or "gpu.<kind>"."""
    kind = DeviceKind(kind)
    return CPU if kind is DeviceKind.CPU else GPU_PREFIX + kind.value


def device_kind(queue: str) -> DeviceKind:
    """Return the device kind of a device queue. Raise ValueError for a queue without a device."""
    return DeviceKind(queue.removeprefix(GPU_PREFIX))
