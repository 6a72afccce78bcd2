"""Everything over the wire is hostile: slow and lying bodies, numbers that are none, nesting, tricks in names."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service import openapi
from service.middleware.body_limit import BodyLimit
from tests.db.world import World
from tests.service.conftest import PROBLEM
from tests.service.test_refusals import refused

API = "/api/v1"
JSON = {"content-type": "application/json"}


def posts(app: FastAPI) -> list[str]:
    """The address of every POST that takes a body, with ids of nothing."""
    return [
        path.replace("{id}", "run_" + "0" * 26)
        for path, methods in openapi.build(app)["paths"].items()
        if "requestBody" in methods.get("post", {})
    ]


def ask(messages: Sequence[Any], *, headers: Sequence[tuple[bytes, bytes]] = ()) -> tuple[int, dict[str, Any]]:
    """Return the answer of a limit of 100 bytes within 50 ms to a body that comes in these messages, and then stops."""
    sent: list[Any] = []
    left = list(messages)

    async def receive() -> Any:
        if left:
            return left.pop(0)
        return await asyncio.Future()  # nothing more ever comes

    async def send(message: Any) -> None:
        sent.append(message)

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    limit = BodyLimit(inner, max_bytes=100, deadline_s=0.05)
    asyncio.run(limit({"type": "http", "method": "POST", "headers": list(headers)}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def chunk(data: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def test_a_body_that_stalls_is_given_up() -> None:
    for messages in ([], [chunk(b"{", more=True)], [chunk(b"a", more=True)] * 9):
        status, document = ask(messages)
        assert (status, document["type"]) == (408, "/errors/too-slow")


def test_a_body_may_not_lie_about_its_size() -> None:
    long = [chunk(b"x" * 60, more=True), chunk(b"x" * 60, more=False)]
    for declared in (b"10", b"-5", b"0x10", b"", b"\xb2"):
        assert ask(long, headers=[(b"content-length", declared)])[0] == 413
    for declared in (b"101", b"9" * 50):
        assert ask([], headers=[(b"content-length", declared)])[0] == 413
    assert ask([chunk(b"x" * 100, more=False)])[0] == 204


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b"[" * 100_000,
        b'"' + b"\\u0000" * 10,
        b"nul",
        b"{} {}",
        b"\x80",
        b"'a'",
    ],
)
def test_what_is_not_json_is_refused_everywhere(client: TestClient, app: FastAPI, content: bytes) -> None:
    for path in posts(app):
        response = client.post(path, content=content, headers=JSON)
        assert response.status_code in (400, 404, 422), (path, response.text)
        refused(response, response.status_code)


def test_broken_json_is_told_with_its_place(client: TestClient) -> None:
    response = client.post(f"{API}/problems", content=b'{"name": }', headers=JSON)
    [error] = refused(response, 422, "invalid-request")["errors"]
    assert error == {
        "location": "body", "field": "", "message": "this is no JSON: Expecting value, at character 9"
    }  # fmt: skip


NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1", "0", "9" * 400, '"1"', "[1]", "true")


def test_numbers_that_are_none_are_refused(client: TestClient, finished: str) -> None:
    before = client.get(f"{API}/runs/{finished}").json()
    for field, number in itertools.product(("wall_s", "usd", "candidates"), NO_NUMBERS):
        for step in ("extend", "fork"):
            content = f'{{"budget": {{"{field}": {number}}}}}'
            response = client.post(f"{API}/runs/{finished}/{step}", content=content, headers=JSON)
            refused(response, 422, "invalid-request")
    assert client.get(f"{API}/runs/{finished}").json() == before
    assert len(client.get(f"{API}/runs").json()["items"]) == 1


def test_sizes_that_are_none_are_refused(client: TestClient) -> None:
    for number in ("NaN", "Infinity", "-Infinity", "1e400", "1" + "0" * 4000, "0", "-5"):
        problem = f'{{"name": "x", "source": {json.dumps(PROBLEM)}, "sizes": [{{"rows": {number}}}]}}'
        for path, content in (
            ("problems", problem),
            ("runs", f'{{"problem": {problem}, "budget": {{"candidates": 1}}}}'),
            ("evaluations", f'{{"problem": {problem}, "source": "x"}}'),
        ):
            refused(client.post(f"{API}/{path}", content=content, headers=JSON), 422)
    assert client.get(f"{API}/problems").json()["items"] == []


@pytest.mark.parametrize(
    "address",
    [
        *(f"{API}/{path}?problem_id=%00" for path in ("runs", "leaderboard", "leaderboard.csv")),
        *(f"{path}=%00" for path in ("/?q", "/?device", "/?proposer", "/leaderboard.csv?q", "/runs?q")),
    ],
)
def test_a_nul_in_a_filter_is_refused(client: TestClient, address: str) -> None:
    refused(client.get(address), 422, "invalid-request")


NAMES = ("../../etc/passwd", "..\\..\\x", 'a"; filename=evil.exe', "%2e%2e%2f", "a/b", "CON", "é€漢", "<b>", "-rf")


def test_a_name_cannot_leave_the_file_it_names(client: TestClient, world: World) -> None:
    runs = []
    for name in NAMES:
        body = {"problem": {"name": name, "source": f"{PROBLEM}# {name}"}, "source": "speed=2.0 "}
        response = client.post(f"{API}/evaluations", json=body)
        assert response.status_code == 202, response.text
        runs.append(response.json()["run_id"])
    world.drain()
    for run in runs:
        download = client.get(f"{API}/runs/{run}/download")
        assert download.status_code == 200
        assert re.fullmatch(r'attachment; filename="[a-z][a-z0-9_]*\.py"', download.headers["content-disposition"])
        assert download.headers["x-content-type-options"] == "nosniff"
    assert {problem["name"] for problem in client.get(f"{API}/problems").json()["items"]} == set(NAMES)


@pytest.mark.parametrize(
    "id", ["../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "a" * 3000, "run_\u202e", "'--"]
)
def test_an_id_is_an_id_everywhere(client: TestClient, app: FastAPI, id: str) -> None:
    for path in openapi.build(app)["paths"]:
        if path.startswith(API) and "{id}" in path:
            assert client.get(path.replace("{id}", id)).status_code in (404, 405)


def test_markup_in_what_an_agent_hands_in_stays_text(client: TestClient, world: World) -> None:
    script = "<script>alert(1)</script>"
    given = {"name": script, "source": f"# {script}\n{PROBLEM}"}
    body = {"problem": given, "source": f"speed=2.0 # {script}"}
    record = client.post(f"{API}/evaluations", json=body).json()
    world.drain()
    for path in (f"/candidates/{record['candidate_id']}", f"/problems/{record['problem_id']}", "/"):
        text = client.get(path).text
        assert script not in text
    for path in (f"problems/{record['problem_id']}", f"candidates/{record['candidate_id']}/source"):
        response = client.get(f"{API}/{path}")
        assert script in response.text
        assert "html" not in response.headers["content-type"]


def test_a_refusal_never_repeats_what_was_sent(client: TestClient) -> None:
    secret = "hunter2-hunter2-hunter2"
    bodies: list[Any] = [
        {"budget": {"candidates": secret}},
        {"budget": {"candidates": 1}, "problem_id": "p", "webhook": {"url": secret, "secret": secret}},
        {"budget": {"candidates": 1}, "problem": {"name": "x", "source": PROBLEM}, "config": {"seed": secret}},
    ]
    for body in bodies:
        assert secret not in client.post(f"{API}/runs", json=body).text
