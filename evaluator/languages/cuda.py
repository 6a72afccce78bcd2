"""CUDA C++ through `warpwright_native.load_cuda` (NVRTC): compiled when the module is imported, GPU or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluator.languages.base import Ahead, BuildFacts, build_by_importing
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language


class CudaAdapter:
    """Candidates with CUDA C++ kernels."""

    language = Language.CUDA

    def timed_on(self, kind: DeviceKind) -> bool:
        return kind is DeviceKind.CUDA

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        """Nothing: without a GPU NVRTC compiles for the target that load_cuda falls back to."""
        del kind
        return {}

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        return None

    def build(self, child: ChildProcess, kind: DeviceKind, ahead: Ahead) -> BuildFacts:
        """Import the Candidate, which compiles its sources; registers and shared memory of each kernel."""
        del ahead
        return build_by_importing(child, kind)
