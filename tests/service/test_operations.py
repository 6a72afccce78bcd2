"""Operators' view of the service: ids through the queue, metrics that add up, checks that tell the truth."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import structlog
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

import db.engine
from db.engine import read_session, write_session
from db.repositories.work import operations as picture_of
from db.tables.counters import count
from db.tables.queue import JobRow
from runtime.logs import configure_logging
from runtime.queues import TASK_WORK
from runtime.settings import Settings
from service.app import create_app
from service.routers import operations
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM
from tests.support.stacks import Stack
from tests.support.valkey import valkey

pytestmark = pytest.mark.both_stacks(soak=True)

API = "/api/v1"


def metrics(client: TestClient) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a scrape, by its name and labels."""
    text = client.get("/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def start(client: TestClient) -> tuple[str, str]:
    """Start a Run over HTTP; its id, and the request's."""
    body = {"problem": {"source": PROBLEM, "name": "softmax"}, "device": "cpu", "budget": {"candidates": 5}}
    response = client.post(f"{API}/runs", json=body)
    assert response.status_code == 202
    return response.json()["id"], response.headers["x-request-id"]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[list[dict[str, object]]]:
    """The log's lines as JSON, filled at the end of a `with read(lines)`; here: configured, and put back."""
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    found: list[dict[str, object]] = []
    yield found
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


def test_every_request_has_a_line_with_its_id(
    client: TestClient, finished: str, lines: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("INFO", "json")
    answer = client.get(f"{API}/runs/{finished}")
    client.get("/%1b[31mred%0aforged")
    client.get("/healthz")
    lines += [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    told = [line for line in lines if line["event"] == "request.answered"]
    assert len(told) == 2  # nobody needs to read of health checks
    assert told[0]["run_id"] == finished
    assert told[0]["request_id"] == answer.headers["x-request-id"]
    assert re.fullmatch(r"req_[0-9a-f]{16}", str(told[0]["request_id"]))
    assert told[1]["path"] == "/%1b[31mred%0aforged"  # as it was sent: nothing that a terminal would act on
    assert told[1]["status"] == 404


def test_a_request_s_id_goes_with_every_job_that_comes_of_it(client: TestClient, world: World, engine: Engine) -> None:
    run_id, request_id = start(client)
    world.drain()
    with read_session(engine) as s:
        found = s.execute(select(JobRow.kind, JobRow.request_id).where(JobRow.project_id == "default")).all()
    assert {row.kind for row in found} >= {"admit", "baseline", "advance", "propose", "build", "judge", "confirm"}
    assert {row.request_id for row in found} == {request_id}
    assert all(job.request_id == request_id for job in world.done)
    paused = client.post(f"{API}/runs/{run_id}/cancel")
    assert paused.headers["x-request-id"] != request_id


def test_an_error_is_logged_under_the_id_that_the_client_sees(
    client: TestClient,
    lines: list[dict[str, object]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("service.routers.runs.runs.list", broken)
    configure_logging("INFO", "json")
    response = client.get(f"{API}/runs")
    lines += [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert response.status_code == 500
    assert "secret" not in response.text
    (broke,) = [line for line in lines if line["event"] == "request.broke"]
    assert response.json()["error_id"] == broke["error_id"] == broke["request_id"] == response.headers["x-request-id"]
    assert "a secret" in str(broke["exception"])


def test_metrics_add_up_to_what_happened(client: TestClient, world: World, engine: Engine) -> None:
    start(client)
    waiting = metrics(client)
    assert waiting["warpwright_jobs", (("queue", "cpu"), ("state", "ready"))] == 1
    assert waiting["warpwright_job_oldest_ready_seconds", (("queue", "cpu"),)] >= 0
    assert waiting["warpwright_runs", (("status", "queued"),)] == 1
    world.drain()
    seen = metrics(client)
    assert not [key for key in seen if key[0] == "warpwright_jobs"]
    assert seen["warpwright_database_up", ()] == 1
    settled = {key[1]: value for key, value in seen.items() if key[0] == "warpwright_evaluations_total"}
    kinds = {kind for labels in settled for name, kind in labels if name == "kind"}
    assert kinds >= {"judge", "confirm"}
    judged = sum(1 for job in world.done if job.kind in ("judge", "confirm"))
    refused_at_build = settled[("kind", "judge"), ("stage", "build"), ("verdict", "BUILD_ERROR")]
    assert sum(settled.values()) == judged + refused_at_build
    timing = (("stage", "timing"),)
    assert seen["warpwright_stage_seconds_count", timing] * 0.5 == seen["warpwright_stage_seconds_sum", timing]
    assert seen["warpwright_stage_seconds_bucket", (("le", "0.3"), *timing)] == 0
    assert seen["warpwright_stage_seconds_bucket", (("le", "1.0"), *timing)] > 0
    device = (("device", "Test CPU"), ("kind", "cpu"))
    assert seen["warpwright_device_seconds_total", device] > 0
    outcome = (("model", ""), ("outcome", "candidate"), ("proposer", "synthesiser"))
    assert seen["warpwright_proposals_total", outcome] == 5
    assert (
        seen["warpwright_http_requests_total", (("method", "POST"), ("operation", "create_run"), ("status", "202"))] > 0
    )


def give_up(s: Session) -> None:
    count(s, "test", "a")
    raise InterruptedError


def test_what_a_transaction_counted_is_kept_only_if_it_was(engine: Engine) -> None:
    def total() -> float:
        with read_session(engine) as s:
            return picture_of.picture(s).counters.get("test", {}).get(("a",), 0.0)

    for _ in range(3):
        with write_session(engine) as s:
            count(s, "test", "a")
            count(s, "test", "a", by=0.5)
    with pytest.raises(InterruptedError), write_session(engine) as s:
        give_up(s)
    assert total() == 4.5


def test_metrics_are_answered_while_the_database_is_away(settings: Settings, tmp_path: object) -> None:
    away = settings.model_copy(update={"database_url": f"sqlite:///{tmp_path}/no/such/folder.db"})
    with TestClient(create_app(away), base_url=BASE_URL) as client:
        seen = metrics(client)
        assert seen["warpwright_database_up", ()] == 0
        assert seen["warpwright_event_followers", ()] == 0
        assert client.get("/healthz").status_code == 200
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["checks"]["database"] == "not reachable"


@pytest.mark.both_stacks
def test_ready_means_that_all_is_there(settings: Settings, database: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with valkey() as url:
        app = create_app(settings.model_copy(update={"redis_url": url}), engine=database)
        with TestClient(app, base_url=BASE_URL) as client:
            assert client.get("/readyz").json() == {
                "status": "ok",
                "checks": {"database": "ok", "broker": "ok", "events": "ok"},
            }
            monkeypatch.setattr(db.engine, "newest_revision", lambda: "9999")
            ready = client.get("/readyz")
            assert ready.status_code == 503
            assert "python -m db migrate" in ready.json()["checks"]["database"]
            monkeypatch.undo()
            stop_tailer(app, client)
            assert "restart" in client.get("/readyz").json()["checks"]["events"]
    with TestClient(app, base_url=BASE_URL) as client:  # the broker has gone
        checks = client.get("/readyz").json()["checks"]
        assert checks["broker"].startswith("not reachable")
        assert checks["events"] == "ok"


def stop_tailer(app: FastAPI, client: TestClient) -> None:
    assert client.portal is not None
    client.portal.call(app.state.context.hub.stop)


def test_a_database_that_hangs_is_not_waited_for(
    app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And health is answered meanwhile, since it needs nothing but the process."""
    release = threading.Event()
    monkeypatch.setattr(operations, "READY_S", 0.05)
    monkeypatch.setattr(db.engine, "check", lambda engine: release.wait(20))
    try:
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["checks"]["database"] == "did not answer in 0.05 seconds"
        assert client.get("/healthz").status_code == 200
    finally:
        release.set()


def test_health_needs_no_thread() -> None:
    assert asyncio.iscoroutinefunction(operations.health)


def test_a_new_run_is_announced_once_it_is_committed(
    client: TestClient, stack: Stack, settings: Settings, nudges: list[str]
) -> None:
    """On the message broker itself where there is one: what a worker would take."""
    start(client)
    assert nudges == ["cpu", "propose"], "Proposers prepare while the Problem is admitted"
    if stack.has_broker:
        with redis.Redis.from_url(settings.redis_url) as broker:
            message = json.loads(broker.lindex("cpu", 0))
        assert message["headers"]["task"] == TASK_WORK
        assert json.loads(base64.b64decode(message["body"]))[0] == ["cpu"]


def test_every_metric_is_documented(client: TestClient) -> None:
    text = client.get("/metrics").text
    served = {
        line.split()[2].removesuffix("_total").removesuffix("_created")
        for line in text.splitlines()
        if line.startswith("# TYPE ")
    }
    page = (Path(__file__).parents[2] / "docs" / "guide" / "operations.md").read_text(encoding="utf-8")
    documented = {name.removesuffix("_total") for name in re.findall(r"^\| `(warpwright_\w+)`", page, re.MULTILINE)}
    assert served == documented
