"""PyTorch alone: nothing to compile before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluator.languages.base import Ahead, BuildFacts, build_by_importing
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind, Language


class TorchAdapter:
    """Candidates that rearrange PyTorch's own operations."""

    language = Language.TORCH

    def timed_on(self, kind: DeviceKind) -> bool:
        return True

    def child_environment(self, kind: DeviceKind) -> Mapping[str, str]:
        return {}

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        return None

    def build(self, child: ChildProcess, kind: DeviceKind, ahead: Ahead) -> BuildFacts:
        """Import the Candidate; there is nothing to compile."""
        del ahead
        return build_by_importing(child, kind)
