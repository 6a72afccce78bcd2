"""A whole Run as a download."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from db.engine import read_session
from db.recording import read_recording
from db.repositories import candidates
from service.routers import downloads

API = "/api/v1"


def test_a_run_is_taken_home_whole(client: TestClient, engine: Engine, finished: str) -> None:
    response = client.get(f"{API}/runs/{finished}/recording")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["content-disposition"] == f'attachment; filename="{finished}.zip"'
    assert int(response.headers["content-length"]) == len(response.content)
    recording = read_recording(response.content)
    assert recording.manifest["run_id"] == finished
    with read_session(engine) as s:
        stored = [one.id for one in candidates.list(s, finished, limit=500)]
    assert sorted(one["id"] for one in recording.lines["candidates"]) == sorted(stored)
    assert recording.lines["events"][-1]["kind"] == "run.ended"
    page = client.get(f"/runs/{finished}", headers={"accept": "text/html"})
    assert f'href="{API}/runs/{finished}/recording"' in page.text


def test_a_run_that_is_too_large_is_refused(client: TestClient, finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MOST_RECORDED", 1)
    response = client.get(f"{API}/runs/{finished}/recording")
    assert response.status_code == 409
    assert response.json()["type"].endswith("run-too-large")


def test_one_is_written_at_a_time_and_a_failure_frees_the_place(
    client: TestClient, finished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with downloads._ONE_AT_A_TIME:
        response = client.get(f"{API}/runs/{finished}/recording")
        assert (response.status_code, response.headers["retry-after"]) == (429, "5")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(downloads, "export_run", fail)
        assert client.get(f"{API}/runs/{finished}/recording").status_code == 500
    assert client.get(f"{API}/runs/{finished}/recording").status_code == 200
