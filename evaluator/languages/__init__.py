"""The table of languages: a language is one folder here, a line in `Language`, and a line in `ADAPTERS`.

Nothing here loads torch, so processes that never judge read the table too.
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.languages.base import LanguageAdapter, used_names, version
from evaluator.languages.cpp import CppAdapter
from evaluator.languages.cuda import CudaAdapter
from evaluator.languages.cutile import CutileAdapter
from evaluator.languages.helion import HelionAdapter
from evaluator.languages.torch import TorchAdapter
from evaluator.languages.triton import TritonAdapter
from evaluator.types import DeviceKind, Language

# A source belongs to the first language that recognises it. Helion comes before Triton, since its sources may name
# both; Triton before CUDA, since a Triton module may load a helper; CUDA before C++, since CUDA sources often come with
# a C++ binding; PyTorch recognises everything.
ADAPTERS: Mapping[Language, LanguageAdapter] = {
    Language.HELION: HelionAdapter(),
    Language.CUTILE: CutileAdapter(),
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


def optional_versions() -> str | None:
    """Return the versions of the optional packages of languages that are installed here: "helion 1.5.1"."""
    names = [name for one in ADAPTERS.values() for name in one.optional]
    return ", ".join(f"{name} {found}" for name in names if (found := version(name))) or None


__all__ = ["ADAPTERS", "LanguageAdapter", "adapter", "detect", "gpu_kernels", "optional_versions", "usual_language"]
