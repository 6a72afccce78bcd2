"""C++ for the CPU: compiled by g++ when the module is loaded; the library travels to the judging child."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluator.languages.base import Ahead, BuildFacts, build_by_importing
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language


class CppAdapter:
    """Candidates with C++ through `warpwright_native.load_cpp`, ctypes or torch's own extension builder."""

    language = Language.CPP

    def timed_on(self, kind: DeviceKind) -> bool:
        return kind is DeviceKind.CPU

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        return {}

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        return None

    def build(self, child: ChildProcess, kind: DeviceKind, ahead: Ahead) -> BuildFacts:
        """Import the Candidate, which compiles its sources."""
        del ahead
        return build_by_importing(child, kind)
