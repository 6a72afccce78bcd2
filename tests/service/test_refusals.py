"""Hostile and mistaken requests: one shape of error, nothing leaked, nothing stored half."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from db.engine import write_session
from db.transitions.access.keys import create_key
from runtime.settings import Settings
from service.app import create_app
from service.http.paging import decode_cursor, encode_cursor
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM

API = "/api/v1"
GOOD = {"problem": {"name": "softmax", "source": PROBLEM}, "budget": {"candidates": 2}}
NOBODY = "00000000000000000000000000"


def refused(response: Any, status: int, slug: str | None = None) -> dict[str, Any]:
    """The problem document of a refusal, checked for its shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-content-type-options"] == "nosniff"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    if slug is not None:
        assert document["type"] == f"/errors/{slug}"
    return document


def with_(**changes: object) -> dict[str, object]:
    return {**GOOD, **changes}


BAD_BODIES: list[tuple[object, str]] = [
    (with_(extra=1), "/extra"),
    (with_(budget={"candidates": 2, "cents": 1}), "/budget/cents"),
    (with_(budget={}), "/budget"),
    (with_(budget={"candidates": None}), "/budget"),
    (with_(budget={"candidates": "2"}), "/budget/candidates"),
    (with_(budget={"candidates": True}), "/budget/candidates"),
    (with_(budget={"candidates": 2.5}), "/budget/candidates"),
    (with_(budget={"candidates": 0}), "/budget/candidates"),
    (with_(budget={"candidates": 10**30}), "/budget/candidates"),
    (with_(budget={"wall_s": -1}), "/budget/wall_s"),
    (with_(device="tpu"), "/device"),
    (with_(device=1), "/device"),
    (with_(problem_id="prob_" + NOBODY), ""),
    (with_(problem=None), ""),
    (with_(problem={"name": "", "source": PROBLEM}), "/problem/name"),
    (with_(problem={"name": "a\nb", "source": PROBLEM}), "/problem/name"),
    (with_(problem={"name": "a\0b", "source": PROBLEM}), "/problem/name"),
    (with_(problem={"name": "  ", "source": PROBLEM}), "/problem/name"),
    (with_(problem={"name": "gnp.\u202eexe", "source": PROBLEM}), "/problem/name"),
    (with_(problem={"name": "x" * 300, "source": PROBLEM}), "/problem/name"),
    (with_(problem={"name": "x", "source": PROBLEM, "path": "/etc/passwd"}), "/problem/path"),
    (with_(problem={"name": "x", "source": PROBLEM + "\0"}), "/problem/source"),
    (with_(problem={"name": "x", "source": "é" * 600_000}), "/problem/source"),
    (with_(config={"seed": -1}), "/config/seed"),
    (with_(config={"seed": 2**63}), "/config/seed"),
    (with_(config={"islands": 1000}), "/config/islands"),
    (with_(config={"proposers": []}), "/config/proposers"),
    (with_(config={"proposers": ["../../x y"]}), "/config/proposers/0"),
    (with_(config={"target_speedup": 0}), "/config/target_speedup"),
    ([], ""),
    ("text", ""),
    (None, ""),
    (7, ""),
]


@pytest.mark.parametrize(("body", "field"), BAD_BODIES)
def test_a_body_that_does_not_fit_names_the_field(client: TestClient, body: object, field: str) -> None:
    document = refused(client.post(f"{API}/runs", json=body), 422, "invalid-request")
    assert field in [error["field"] for error in document["errors"]]
    assert client.get(f"{API}/runs").json()["items"] == []
    assert client.get(f"{API}/problems").json()["items"] == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"\xff\xfe\x00", 400),
        (b'{"name": "\xff", "source": ""}', 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 400),
        (b'{"name": "x", "source": ' + b"9" * 5000 + b"}", 400),
        (b'{"name": "\\ud800", "source": "x"}', 422),
        (b'{"name": "x", "source": "\\ud800"}', 422),
        (b'{"name": "x", "source": NaN}', 422),
    ],
)
def test_a_body_that_is_not_json_text_is_refused(client: TestClient, content: bytes, status: int) -> None:
    refused(client.post(f"{API}/problems", content=content, headers={"content-type": "application/json"}), status)


def test_only_json_is_read_as_json(client: TestClient) -> None:
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        headers = {} if kind is None else {"content-type": kind}
        response = client.post(f"{API}/runs", content=json.dumps(GOOD), headers=headers)
        assert "Content-Type: application/json" in refused(response, 422)["errors"][0]["message"]
    assert client.get(f"{API}/runs").json()["items"] == []


@pytest.mark.parametrize(
    ("source", "line", "word"),
    [
        ("def f(:\n", 1, "parse"),
        ("x = 1\ny = = 2\n", 2, "parse"),
        ("import torch\n", None, "get_inputs"),
        ("def get_inputs():\n    return []\n", None, "Model"),
        (PROBLEM.replace('"rows": 33', '"rows": int(33)'), 5, "literal"),
        ('DOMAIN = "moon"\n' + PROBLEM, 1, "DOMAIN"),
        ("(" * 5000, None, "parse"),
        ("-" * 200_000 + "1", None, "parse"),
        ("x = " + "[" * 90 + "]" * 90 + "\n" + "\\", None, "parse"),
    ],
)
def test_a_reference_that_cannot_be_read_says_where_and_what_to_do(
    client: TestClient, source: str, line: int | None, word: str
) -> None:
    document = refused(client.post(f"{API}/problems", json={"name": "x", "source": source}), 422, "problem-refused")
    if line is not None:
        assert document["line"] == line
    assert word in document["detail"]


def test_a_posted_reference_is_never_executed(client: TestClient, tmp_path: Any) -> None:
    trap = tmp_path / "executed"
    source = f"open({str(trap)!r}, 'w').close()\n{PROBLEM}"
    assert client.post(f"{API}/problems", json={"name": "x", "source": source}).status_code == 201
    assert not trap.exists()


@pytest.mark.parametrize("noun", ["problems", "runs", "candidates", "proposals"])
@pytest.mark.parametrize(
    "id", ["x", "run_" + NOBODY, "prob_" + NOBODY, "cand_" + NOBODY, "%00", "..%2f..%2fetc%2fpasswd", "é", "a" * 5000]
)
def test_what_is_not_there_is_not_found(client: TestClient, noun: str, id: str) -> None:
    refused(client.get(f"{API}/{noun}/{id}"), 404)


def test_things_of_another_project_are_not_found(client: TestClient, engine: Engine, world: World) -> None:
    from sqlalchemy import text

    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(
            text(
                "INSERT INTO projects (id, name, weight, created_at) VALUES ('other', 'other', 1.0, CURRENT_TIMESTAMP)"
            )
        )
    run = world.start(project="other")
    world.drain()
    champion = world.run(run.id).champion_id
    for path in (
        f"problems/{run.problem_id}",
        f"problems/{run.problem_id}/download?device=cpu",
        f"runs/{run.id}",
        f"runs/{run.id}/events",
        f"runs/{run.id}/candidates",
        f"runs/{run.id}/proposals",
        f"runs/{run.id}/download",
        f"candidates/{champion}",
        f"candidates/{champion}/source",
        f"candidates/{champion}/evaluations",
        f"candidates/{champion}/lineage",
        f"problems/{run.problem_id}/champions",
        *(f"runs/{run.id}/{part}" for part in ("archive", "milestones", "tallies", "arms", "jobs", "evaluations")),
    ):
        refused(client.get(f"{API}/{path}"), 404)
    for action in ("cancel", "pause", "resume"):
        refused(client.post(f"{API}/runs/{run.id}/{action}"), 404)
    refused(client.post(f"{API}/runs", json={"problem_id": run.problem_id, "budget": {"candidates": 1}}), 404)
    for page in (f"/runs/{run.id}", f"/candidates/{champion}", f"/problems/{run.problem_id}"):
        assert client.get(page).status_code == 404
    for path in ("problems", "runs", "leaderboard", "leaderboard/summary", "spend"):
        assert client.get(f"{API}/{path}").json()["items"] == []
    assert client.get(f"{API}/leaderboard.csv").text.count("\n") == 1
    assert run.id not in client.get("/").text
    assert run.id not in client.get("/runs").text


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_an_unknown_method_names_the_known_ones(client: TestClient, method: str) -> None:
    response = getattr(client, method)(f"{API}/problems")
    refused(response, 405, "method-not-allowed")
    assert response.headers["allow"] == "GET, POST"


def test_unknown_addresses_are_not_found(client: TestClient) -> None:
    for path in (
        "/api",
        f"{API}/",
        f"{API}/nothing",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/",
    ):
        refused(client.get(path), 404)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "....",
        "a" * 300,
        encode_cursor("runs", "run_" + NOBODY),
        encode_cursor("problems", "prob_x\n"),
        encode_cursor("problems", "prob_" + NOBODY) + "A",
        encode_cursor("problems", "prob_" + NOBODY) + "=",
        "WyJwcm9ibGVtcyIsIDFd",
        "Ww",
    ],
)
def test_a_forged_cursor_is_refused(client: TestClient, cursor: str) -> None:
    refused(client.get(f"{API}/problems", params={"cursor": cursor}), 400, "bad-cursor")


def test_a_cursor_comes_back_as_it_was() -> None:
    assert decode_cursor("runs", encode_cursor("runs", "run_1")) == "run_1"


@pytest.mark.parametrize("limit", ["0", "-1", "201", "ten", "1e3", ""])
def test_a_limit_that_makes_no_sense_is_refused(client: TestClient, limit: str) -> None:
    document = refused(client.get(f"{API}/problems", params={"limit": limit}), 422)
    assert document["errors"][0]["field"] == "limit"


def test_a_misspelt_filter_is_not_taken_for_none(client: TestClient, world: World) -> None:
    run = world.start()
    for path, name in ((f"runs/{run.id}", "x"), ("problems", "Limit"), (f"runs/{run.id}/candidates", "ordr")):
        document = refused(client.get(f"{API}/{path}", params={name: "1"}), 422, "invalid-request")
        assert document["errors"][0]["field"] == name
        assert "no such parameter" in document["errors"][0]["message"]


def test_a_whole_number_may_be_written_with_a_point(client: TestClient) -> None:
    body = json.dumps(GOOD).replace('"candidates": 2', '"candidates": 2.0')
    response = client.post(f"{API}/runs", content=body, headers={"content-type": "application/json"})
    assert response.json()["budget"]["candidates"] == 2


def test_a_large_body_is_refused_before_it_is_read(client: TestClient) -> None:
    response = client.post(f"{API}/problems", content=b" " * (2**21 + 1), headers={"content-type": "application/json"})
    refused(response, 413, "too-large")
    assert response.headers["connection"] == "close"

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * 65536

    refused(client.post(f"{API}/problems", content=chunks()), 413, "too-large")


def test_a_source_may_have_a_megabyte(client: TestClient) -> None:
    source = PROBLEM + "#" * (2**20 - len(PROBLEM))
    assert client.post(f"{API}/problems", json={"name": "x", "source": source}).status_code == 201
    refused(client.post(f"{API}/problems", json={"name": "x", "source": source + "#"}), 422)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost@evil", "[::2]:80"])
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    refused(client.get("/", headers={"host": host}), 400, "unknown-host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"])
def test_our_own_hosts_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_sites_page_changes_nothing(client: TestClient, world: World, headers: dict[str, str]) -> None:
    run = world.start()
    refused(client.post(f"{API}/runs/{run.id}/cancel", headers=headers), 403, "cross-origin")
    assert client.get(f"{API}/runs/{run.id}").json()["status"] != "cancelled"
    own = {"origin": BASE_URL, "sec-fetch-site": "same-origin"}
    assert client.post(f"{API}/runs/{run.id}/cancel", headers=own).status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "\x7f"])
def test_an_odd_idempotency_key_is_refused(client: TestClient, key: str) -> None:
    refused(client.post(f"{API}/runs", json=GOOD, headers={"idempotency-key": key}), 422)


def test_an_unknown_proposer_and_a_device_without_workload_are_refused(client: TestClient) -> None:
    document = refused(client.post(f"{API}/runs", json=with_(config={"proposers": ["gpt"]})), 422, "unknown-proposer")
    assert "synthesiser" in document["detail"]
    replay = with_(config={"proposers": ["replay:recorded.jsonl"]})
    document = refused(client.post(f"{API}/runs", json=replay), 422, "unknown-proposer")
    assert "WARPWRIGHT_REPLAY_DIR" in document["detail"]
    refused(client.post(f"{API}/runs", json=with_(device="cuda")), 422, "no-workload")
    assert client.get(f"{API}/problems").json()["items"] == []


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 30, "99"])
def test_a_forged_event_id_is_refused(client: TestClient, world: World, value: str) -> None:
    run = world.start()
    headers = {"accept": "text/event-stream", "last-event-id": value}
    refused(client.get(f"{API}/runs/{run.id}/events", headers=headers), 400, "bad-event-id")


def test_an_error_of_ours_leaks_an_id_and_nothing_else(
    settings: Settings,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret: /var/lib/warpwright")

    monkeypatch.setattr("db.repositories.leaderboard.rows", fail)
    with capture_logs() as logs, TestClient(create_app(settings, engine=engine), base_url=BASE_URL) as client:
        for path in (f"{API}/leaderboard", "/"):
            document = refused(client.get(path), 500, "internal")
            assert "secret" not in json.dumps(document)
            assert document["error_id"] in document["detail"]
            assert document["error_id"] in caplog.text + str(logs)  # whichever way logging was set up before
        page = client.get("/", headers={"accept": "text/html"})
        assert page.status_code == 500
        assert page.headers["content-type"].startswith("text/html")
        assert "secret" not in page.text


@pytest.mark.parametrize("reads", ["db.repositories.leaderboard.rows", "db.repositories.access.keys.grant_of_key"])
@pytest.mark.parametrize(
    "error",
    [OperationalError("SELECT secret", {}, Exception("database is locked")), PoolTimeout("secret: 40 connections")],
)
def test_a_busy_database_is_answered_with_try_again(
    app: FastAPI, engine: Engine, monkeypatch: pytest.MonkeyPatch, reads: str, error: Exception
) -> None:
    with write_session(engine) as s:
        key = create_key(s, "default", name="test", scope="read", created_by="test")[1]

    def busy(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(reads, busy)
    with TestClient(app, base_url=BASE_URL, headers={"authorization": f"Bearer {key}"}) as client:
        for path, type in ((f"{API}/leaderboard", "application/problem+json"), ("/", "text/html; charset=utf-8")):
            response = client.get(path, headers={"accept": type})
            assert response.status_code == 503
            assert response.headers["content-type"] == type
            assert response.headers["retry-after"]
            assert "secret" not in response.text


def test_markup_in_names_and_sources_is_text(client: TestClient, finished: str, world: World) -> None:
    source = PROBLEM.replace("Softmax", "<script>alert(1)</script>")
    response = client.post(f"{API}/problems", json={"name": "<img src=x onerror=alert(1)>", "source": source})
    page = client.get(f"/problems/{response.json()['id']}").text
    champion = world.run(finished).champion_id
    for text in (page, client.get(f"/candidates/{champion}").text):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    assert "&lt;script&gt;" in page
