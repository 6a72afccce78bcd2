"""Language adapters. `detect(source)` says which one a Candidate needs, `adapter(language)` gives it."""

from evaluator.languages.base import LanguageAdapter
from evaluator.languages.cpp import CppAdapter
from evaluator.languages.cuda import CudaAdapter
from evaluator.languages.detection import detect
from evaluator.languages.torch import TorchAdapter
from evaluator.languages.triton import TritonAdapter
from evaluator.types import Language

_ADAPTERS: dict[Language, LanguageAdapter] = {
    Language.TORCH: TorchAdapter(),
    Language.CPP: CppAdapter(),
    Language.TRITON: TritonAdapter(),
    Language.CUDA: CudaAdapter(),
}


def adapter(language: Language) -> LanguageAdapter:
    """The adapter of a language."""
    return _ADAPTERS[language]


__all__ = ["adapter", "detect"]
