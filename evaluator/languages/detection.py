"""Which language a Candidate is written in, from its source text."""

from __future__ import annotations

from evaluator.languages.base import used_names
from evaluator.types import Language

_CUDA = ("warpwright_native.load_cuda", "cuda.core", "cupy", "pycuda")
_CPP = ("warpwright_native.load_cpp", "torch.utils.cpp_extension", "torch.utils.cpp_extension.load_inline")


def detect(source: str) -> Language:
    """The most specific language that the source uses; plain torch where it uses none. Never raises.

    Triton before CUDA before C++: a Triton module may load a helper, and CUDA sources often come with a C++ binding.
    """
    names = used_names(source)
    if any(name == "triton" or name.startswith("triton.") for name in names):
        return Language.TRITON
    if any(name.startswith(_CUDA) for name in names) or "cuda_sources" in source:
        return Language.CUDA
    if any(name.startswith(_CPP) for name in names) or "ctypes" in names:
        return Language.CPP
    return Language.TORCH
