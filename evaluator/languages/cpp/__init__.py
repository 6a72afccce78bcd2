"""C++ for the CPU: g++ compiles it when the module is imported, and the judging child gets the library."""

from __future__ import annotations

from pathlib import Path

from evaluator.languages.base import LanguageAdapter
from evaluator.languages.cpp.niche import NICHES
from evaluator.languages.cpp.notes import NOTES
from evaluator.types import DeviceKind, Language

_MODULES = ("warpwright_native.load_cpp", "torch.utils.cpp_extension")


class CppAdapter(LanguageAdapter):
    """Candidates with C++ through `warpwright_native.load_cpp`, ctypes or torch's own extension builder."""

    language = Language.CPP
    title = "C++ through load_cpp"
    guide = Path(__file__).with_name("guide.j2")
    notes = NOTES
    niches = NICHES
    compiles_on_import = True

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return "ctypes" in names or any(name.startswith(_MODULES) for name in names)

    def timed_on(self, kind: DeviceKind) -> bool:
        return kind is DeviceKind.CPU
