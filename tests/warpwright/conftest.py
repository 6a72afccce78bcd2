from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.warpwright.fake_api import FakeApi, serving


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving(FakeApi()) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_service_by_accident(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands talk to the service that a test names, and keep data in a folder of the test."""
    monkeypatch.delenv("WARPWRIGHT_SERVER", raising=False)
    monkeypatch.setenv("WARPWRIGHT_DATA_DIR", str(tmp_path_factory.mktemp("data")))
