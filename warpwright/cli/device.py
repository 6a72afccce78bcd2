"""Names of devices: `cpu` or `cuda:N`."""

from __future__ import annotations

import re
from pathlib import Path

from warpwright.api.words import DeviceKind
from warpwright.errors import BadUsage

_SHAPE = re.compile(r"cpu|cuda(:\d{1,2})?")


def gpus(dev: Path = Path("/dev")) -> list[str]:
    """Return the GPUs that the NVIDIA driver shows."""
    return sorted(path.name for path in dev.glob("nvidia[0-9]*"))


def default_device(dev: Path = Path("/dev")) -> str:
    """Return `cuda:0` if the NVIDIA driver shows a GPU, else `cpu`."""
    return "cuda:0" if gpus(dev) else "cpu"


def read_device(text: str | None) -> str:
    """Return the device that a user named, or the default one. Raises BadUsage."""
    if text is None:
        return default_device()
    if not _SHAPE.fullmatch(text):
        raise BadUsage(f"--device must be cpu or cuda:N, not {text!r}")
    return "cuda:0" if text == "cuda" else text


def every_worker(dev: Path = Path("/dev")) -> tuple[str, ...]:
    """Return the queues of a stack that does all the work that this machine can do."""
    return ("control", "propose", "build", "cpu", *(("gpu", "gpu-build") if gpus(dev) else ()))


def kind_of(device: str) -> DeviceKind:
    """Return the kind of a device that `read_device` returned."""
    return "cpu" if device == "cpu" else "cuda"
