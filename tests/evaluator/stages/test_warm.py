"""A judge prepares what its requests will wait for, and nothing that they will not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evaluator.errors import CageError
from evaluator.stages.judge import Judge
from evaluator.types import DeviceKind


class Session:
    """Stands in for a DeviceSession: notes what is prepared."""

    def __init__(self, *, broken: bool = False) -> None:
        self.prepared: list[str] = []
        self.pools, self.broken = self, broken

    def _note(self, what: str) -> None:
        if self.broken:
            raise CageError("no cage can be built")
        self.prepared.append(what)

    def for_build(self, language: object) -> None:
        assert language is None
        self._note("builds")

    def warm(self) -> None:
        self._note("device")


@pytest.mark.parametrize(
    ("kind", "builds", "prepared"),
    [
        (DeviceKind.CPU, False, []),
        (DeviceKind.CUDA, False, ["device"]),
        (DeviceKind.CPU, True, ["builds"]),
        (DeviceKind.CUDA, True, ["builds"]),
    ],
)
def test_a_judge_that_only_builds_starts_nothing_on_the_device(
    kind: DeviceKind, builds: bool, prepared: list[str]
) -> None:
    session = Session()
    Judge.warm(SimpleNamespace(session=session, backend=SimpleNamespace(kind=kind)), builds=builds)  # type: ignore[arg-type]
    assert session.prepared == prepared


def test_what_cannot_be_prepared_is_left_to_the_request_that_needs_it() -> None:
    session = Session(broken=True)
    backend = SimpleNamespace(kind=DeviceKind.CUDA)
    Judge.warm(SimpleNamespace(session=session, backend=backend), builds=True)  # type: ignore[arg-type]
    assert session.prepared == []
