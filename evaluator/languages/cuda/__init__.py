"""CUDA C++ through `warpwright_native.load_cuda` (NVRTC): compiled when the module is imported, with or without a GPU.

Without one, NVRTC compiles for the target that load_cuda falls back to.
"""

from __future__ import annotations

import re
from pathlib import Path

from evaluator.languages.allowed import AllowedNames
from evaluator.languages.base import LanguageAdapter
from evaluator.languages.cuda.niche import NICHES
from evaluator.languages.cuda.notes import NOTES
from evaluator.types import DeviceKind, Language

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MODULES = ("warpwright_native.load_cuda", "cuda.core", "cupy", "pycuda")
_KERNEL = re.compile(r"\b__global__\b[^;{}()]*?\b(\w+)\s*\(")
_ATTRIBUTE = re.compile(r"\b__(?:launch_bounds|cluster_dims|maxnreg|block_size)__\s*\([^()]*\)")


class CudaAdapter(LanguageAdapter):
    """Candidates with CUDA C++ kernels."""

    language = Language.CUDA
    title = "CUDA C++ through load_cuda"
    guide = Path(__file__).with_name("guide.j2")
    notes = NOTES
    niches = NICHES
    allowed = AllowedNames(members={("warpwright_native", "load_cuda"): ""})
    compiles_on_import = True
    compiles_on_first_call = True

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return "cuda_sources" in source or any(name.startswith(_MODULES) for name in names)

    def timed_on(self, kind: DeviceKind) -> bool:
        return kind is DeviceKind.CUDA

    def gpu_kernels(self, source: str) -> frozenset[str]:
        """Return the names of the `__global__` functions that are written out in a source."""
        return frozenset(_KERNEL.findall(_ATTRIBUTE.sub(" ", COMMENT.sub(" ", source))))
