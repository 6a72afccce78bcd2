"""The table of languages: a language is one folder here, a line in `Language`, and a line in `ADAPTERS`.

Nothing here loads torch, so processes that never judge read the table too.
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.languages.base import LanguageAdapter, used_names
from evaluator.languages.cpp import CppAdapter
from evaluator.languages.cuda import CudaAdapter
from evaluator.languages.torch import TorchAdapter
from evaluator.languages.triton import TritonAdapter
from evaluator.types import DeviceKind, Language

# A source belongs to the first language that recognises it. Triton comes before CUDA, since a Triton module may load a
# helper; CUDA before C++, since CUDA sources often come with a C++ binding; PyTorch recognises everything.
ADAPTERS: Mapping[Language, LanguageAdapter] = {
    Language.TRITON: TritonAdapter(),
    Language.CUDA: CudaAdapter(),
    Language.CPP: CppAdapter(),
    Language.TORCH: TorchAdapter(),
}
_USUAL = {DeviceKind.CPU: Language.CPP, DeviceKind.CUDA: Language.TRITON}


def adapter(language: Language) -> LanguageAdapter:
    """Return the adapter of a language."""
    return ADAPTERS[language]


def detect(source: str) -> Language:
    """Return the most specific language that a source uses, PyTorch if it uses none. Never raises."""
    names = used_names(source)
    return next(language for language, one in ADAPTERS.items() if one.recognises(source, names))


def usual_language(kind: DeviceKind) -> Language:
    """Return the language that a model is asked for on a device unless something else is said."""
    return _USUAL[kind]


def gpu_kernels(source: str, *, without: Language | None = None) -> frozenset[str]:
    """Return the names of the GPU kernels that a Candidate writes out, in all languages but `without`."""
    return frozenset().union(*(one.gpu_kernels(source) for name, one in ADAPTERS.items() if name is not without))


__all__ = ["ADAPTERS", "LanguageAdapter", "adapter", "detect", "gpu_kernels", "usual_language"]
