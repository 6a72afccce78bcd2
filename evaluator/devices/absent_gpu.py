"""A GPU that is elsewhere: kernels are screened and compiled for it here, and nothing runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaluator.devices.cpu import CpuBackend
from evaluator.devices.cuda_children import build_environment
from evaluator.errors import CageError
from evaluator.types import Device, DeviceKind

_NAME = re.compile(r"sm_(\d+)(\d)a?")
_ARCHITECTURE_SPECIFIC = 9
"""From this major version on, NVRTC compiles for sm_90a and its like, which have wgmma."""


class AbsentGpu(CpuBackend):
    """Build kernels for a compute capability, "sm_90", in children on this machine's CPU. Raise CageError for a name
    of another form."""

    kind = DeviceKind.CUDA

    def __init__(self, name: str) -> None:
        found = _NAME.fullmatch(name)
        if found is None:
            raise CageError(f"device {name!r}: a GPU that is elsewhere is named by its capability, such as sm_90")
        super().__init__()
        self._major, self._minor = int(found[1]), int(found[2])

    def describe(self) -> Device:
        capability = f"{self._major}.{self._minor}"
        facts = {"capability": capability}
        return Device(kind=self.kind, name=f"a GPU of capability {capability}", uuid="absent", facts=facts)

    def build_environment(self) -> Mapping[str, str]:
        specific = "a" if self._major >= _ARCHITECTURE_SPECIFIC else ""
        return build_environment(f"sm_{self._major}{self._minor}{specific}")
