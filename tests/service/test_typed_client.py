"""The typed client against the service and its document: complete both ways, and it follows a run through breaks."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from db.queues import JobKind
from runtime.settings import Settings
from service.app import create_app
from tests.db.world import World
from tests.service.conftest import BASE_URL, PROBLEM
from warpwright.api import (
    AsyncClient,
    Client,
    Refused,
    ServiceFailed,
    Unreachable,
    boards,
    judging,
    requests,
    searching,
    words,
)
from warpwright.api.decoding import decode
from warpwright.api.following import Backoff

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = json.loads((ROOT / "service" / "openapi.json").read_text(encoding="utf-8"))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def test_every_operation_has_a_method_with_its_parameters() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            names = {p["name"] for p in operation.get("parameters", ()) if p["in"] in ("path", "query")}
            for client in (Client, AsyncClient):
                method = getattr(client, operation["operationId"])
                assert names <= set(inspect.signature(method).parameters), path


@pytest.mark.parametrize("name", [name for name in SCHEMAS if not name.endswith("Page")])
def test_every_schema_has_a_type_with_its_fields(name: str) -> None:
    modules = (boards, judging, searching, requests, words)
    kind = next(getattr(module, name) for module in modules if hasattr(module, name))
    schema = SCHEMAS[name]
    if "enum" in schema:
        assert set(kind.__args__) == set(schema["enum"])
    elif name.endswith("Request"):
        hints = get_type_hints(kind, include_extras=True)
        assert set(hints) == set(schema["properties"])
        needed = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert needed == set(schema.get("required", ()))
    else:
        assert {field.name for field in dataclasses.fields(kind)} == set(schema["properties"])


@pytest.fixture
def typed(session_client: TestClient, engine: Engine) -> Iterator[Client]:
    with Client(BASE_URL, transport=session_client._transport) as client:
        yield client


def test_a_run_from_beginning_to_end(typed: Client, world: World) -> None:
    problem = typed.create_problem(name="softmax", source=PROBLEM)
    run = typed.create_run(problem_id=problem.id, budget={"candidates": 8}, config={"seed": 3}, device="cpu")
    world.drain()
    run = typed.get_run(run.id)
    assert (run.status, run.budget.candidates, run.spend.candidates > 0) == ("finished", 8, True)
    assert run.champion_id is not None
    candidate = typed.get_candidate(run.champion_id)
    assert candidate.speedup is not None
    assert candidate.speedup.interval.low < candidate.speedup.value
    records = list(typed.each(typed.list_run_evaluations, run.id, limit=2))
    assert len(records) == len({record.id for record in records}) > 3
    newest = typed.get_evaluation(records[0].id)
    assert newest.result is not None
    assert newest.result.measurements[0].baselines[0].clock == "calls"
    assert typed.list_samples(newest.id).items[0].samples_us
    assert [c.number for c in typed.each(typed.list_candidates, run.id, limit=1, order="newest")] == [5, 4, 3, 2, 1]
    assert [event.seq for event in typed.events(run.id)] == list(range(1, run.last_seq + 1))
    assert [event.seq for event in typed.follow(run.id, after=2)] == list(range(3, run.last_seq + 1))
    assert "class ModelNew" in typed.get_candidate_source(run.champion_id)
    assert typed.download_leaderboard().startswith("problem,")
    assert typed.list_leaderboard(q="soft").items[0].candidate_id == run.champion_id
    assert typed.get_lineage(run.champion_id).candidate == candidate


def test_every_list_and_every_thing_can_be_read(typed: Client, finished: str, world: World) -> None:
    """The client reads every answer to a GET as the type that the service declares."""
    run = world.run(finished)
    evaluation = typed.list_run_evaluations(finished).items[0].id
    proposal = typed.list_proposals(finished).items[0].id
    ids = {"runs": finished, "problems": run.problem_id, "candidates": run.champion_id or "", "evaluations": evaluation}
    ids |= {"proposals": proposal, "projects": run.project_id}
    skipped = {"get_readiness", "get_webhook", "get_key"}  # no broker, webhook or key here
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if method != "get" or operation["operationId"] in skipped:
                continue
            arguments = [ids[path.split("/")[3]]] if "{id}" in path else []
            extra = {"device": "cpu"} if operation["operationId"] == "download_problem" else {}
            assert getattr(typed, operation["operationId"])(*arguments, **extra) is not None


def test_errors_are_of_one_tree(typed: Client) -> None:
    with pytest.raises(Refused, match="no run with this id") as missing:
        typed.get_run("run_" + "0" * 26)
    assert (missing.value.status, missing.value.slug) == (404, "not-found")
    with pytest.raises(Refused, match="/budget/candidates"):
        typed.create_run(problem_id="prob_x", budget={"candidates": 0})
    with pytest.raises(Refused):
        typed.get_run("../../etc/passwd")
    with pytest.raises(ServiceFailed, match="not a Interval"):
        decode(judging.Interval, {"low": 1.0})
    assert decode(judging.Interval, {"low": 1, "high": 2, "confidence": 0.9, "new": "x"}).low == 1.0
    with Client("http://127.0.0.1:9") as nobody, pytest.raises(Unreachable):
        nobody.get_health()


def test_the_other_client_awaits(app: FastAPI, engine: Engine, finished: str) -> None:
    async def main() -> None:
        async with AsyncClient(BASE_URL, transport=httpx2.ASGITransport(app=app)) as client:
            run = await client.get_run(finished)
            assert run.status == "finished"
            numbers = [c.number async for c in client.each(client.list_candidates, finished, limit=2)]
            assert numbers == [5, 4, 3, 2, 1]
            assert len([event async for event in client.events(finished)]) == run.last_seq
            with pytest.raises(Refused):
                await client.get_run("run_nothing")

    asyncio.run(main())


class Live:
    """The service on a port of its own; its streams break off after a moment, and are counted."""

    def __init__(self, app: FastAPI) -> None:
        self.streams = 0
        self.app = app
        self.server = uvicorn.Server(
            uvicorn.Config(self.serve, port=0, log_level="error", lifespan="on", interface="asgi3")
        )
        self.thread = threading.Thread(target=self.server.run)

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        self.streams += scope["type"] == "http" and scope["path"].endswith("/events")
        await self.app(scope, receive, send)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"


@pytest.fixture
def live(settings: Settings, engine: Engine) -> Iterator[Live]:
    app = create_app(settings, engine=engine, send_nudges=lambda _: None, keep_alive_s=0.05, stream_lifetime_s=0.15)
    made = Live(app)
    made.thread.start()
    try:
        while not made.server.started:
            assert made.thread.is_alive()
            time.sleep(0.01)
        yield made
    finally:
        made.server.should_exit = True
        made.thread.join()


def test_a_stream_that_breaks_off_is_taken_up_where_it_stopped(live: Live, world: World) -> None:
    run = world.start()
    seqs: dict[str, list[int]] = {"waited": [], "awaited": []}

    def wait() -> None:
        with Client(live.url) as client:
            for event in client.follow(run.id):
                seqs["waited"].append(event.seq)

    async def await_() -> None:
        async with AsyncClient(live.url) as client:
            async for event in client.follow(run.id):
                seqs["awaited"].append(event.seq)

    threads = [threading.Thread(target=wait), threading.Thread(target=lambda: asyncio.run(await_()))]
    for thread in threads:
        thread.start()
    world.work(world.take(JobKind.ADVANCE))
    deadline = time.monotonic() + 60
    while not all(seqs.values()) or live.streams < 6:  # each was broken off and had back
        assert time.monotonic() < deadline
        time.sleep(0.01)
    world.drain()
    for thread in threads:
        thread.join(60)
    whole = list(range(1, world.run(run.id).last_seq + 1))
    assert seqs == {"waited": whole, "awaited": whole}


def test_patience_grows_and_ends() -> None:
    moments = iter([0.0, 1.0, 2.0, 62.5])
    backoff = Backoff("http://x", 60.0, clock=lambda: next(moments))
    error = Unreachable("gone")
    pauses = [backoff.pause(error) for _ in range(2)]
    assert 0.125 <= pauses[0] <= 0.25
    assert 0.25 <= pauses[1] <= 0.5
    backoff.reset()
    assert backoff.pause(error) <= 0.25
    with pytest.raises(Unreachable, match="could not be resumed"):
        backoff.pause(error)
