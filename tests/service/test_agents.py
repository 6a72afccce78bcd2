"""The tools of agents, called by the mcp package's own client over both transports. Some 20 s of CPU."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from sqlalchemy import Engine, select

from db.engine import make_engine, write_session
from db.tables.core import EvaluationRow
from db.transitions.access.keys import create_key
from db.transitions.access.projects import create_project
from db.views.access import Quota
from evaluator.problem import read_problem
from service.agents.reading import next_step
from service.agents.tools import ANNOTATIONS
from tests.db.world import World, from_list
from tests.service.conftest import PROBLEM, SOURCES
from tests.service.test_server import start
from tests.support.stacks import Stack
from warpwright.cli import commands
from warpwright.errors import ExitCode

pytestmark = pytest.mark.stack
OPERATOR = "an-operators-key-0123456789"


@dataclass
class Service:
    """A service that asks for keys, whose workers are played by the test."""

    url: str
    pid: int
    engine: Engine
    world: World

    def key(self, scope: str) -> str:
        with write_session(self.engine) as s:
            return create_key(s, "default", name=scope, scope=scope, created_by="test")[1]

    @asynccontextmanager
    async def client(self, transport: str, key: str) -> AsyncIterator[Client]:
        if transport == "http":
            headers = {"authorization": f"Bearer {key}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
                Client(streamable_http_client(f"{self.url}/mcp", http_client=http)) as client,
            ):
                yield client
            return
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "warpwright", "mcp", "--server", self.url],
            env={**os.environ, "WARPWRIGHT_API_KEY": key},
        )
        async with Client(command) as client:
            yield client

    async def followed(self, followers: int) -> None:
        """Return when so many streams or tools wait for events."""
        headers = {"authorization": f"Bearer {OPERATOR}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http, asyncio.timeout(60):
            while f"warpwright_event_followers {followers}.0" not in (await http.get(f"{self.url}/metrics")).text:
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("agents")
    with stack.database(folder) as url:
        process = start(
            folder, WARPWRIGHT_DATABASE_URL=url, WARPWRIGHT_REDIS_URL=stack.redis_url, WARPWRIGHT_API_KEY=OPERATOR
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "service.log").read_text()
        engine = make_engine(url)
        try:
            world = World(engine, propose=from_list(*SOURCES), problem=read_problem(PROBLEM, "softmax"))
            yield Service(json.loads(line)["url"], process.pid, engine, world)
        finally:
            engine.dispose()
            process.kill()
            process.wait(60)
            process.stdout.close()


async def ask(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    answered = await client.call_tool(tool, arguments)
    assert not answered.is_error, answered.content
    assert answered.structured_content is not None
    return answered.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    answered = await client.call_tool(tool, arguments)
    assert answered.is_error
    return str(answered.content[0].text)  # type: ignore[union-attr]  # every tool answers text


@pytest.mark.clock
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_an_agent_reaches_a_champion_and_continues_a_run(service: Service, transport: str) -> None:
    async def session() -> None:
        async with service.client(transport, service.key("submit")) as client:
            assert "judge_kernel" in (client.instructions or "")
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools.keys() == ANNOTATIONS.keys()
            for name, tool in tools.items():
                assert tool.output_schema is not None
                assert tool.annotations is not None
                hints = tool.annotations.model_dump(include=set(ANNOTATIONS[name]))
                assert hints == ANNOTATIONS[name]
            await _judge_until_it_is_proved(service, client, transport)
            await _search(service, client)

    asyncio.run(session())


async def _judge_until_it_is_proved(service: Service, client: Client, name: str) -> None:
    source = f"# {name}\n{PROBLEM}"
    stored = await ask(client, "submit_problem", name=name, source=source)
    problem = stored["problem_id"]
    assert [one["name"] for one in stored["workloads"]] == ["small"], "held-out workloads are not shown"
    assert (await ask(client, "submit_problem", name=name, source=source))["problem_id"] == problem
    known = await ask(client, "describe_problem", problem_id=problem)
    assert "class ModelNew(torch.nn.Module)" in known["rules"]
    assert "load_cpp" in known["guide"]
    assert "hidden" not in known["source"]
    assert known["champions"] == []
    assert "no champion on cpu yet" in await refused(client, "best_kernel", problem_id=problem)

    wrong = await ask(client, "judge_kernel", problem_id=problem, source="INCORRECT_VALUES", wait_s=0)
    assert wrong["verdict"] is None
    assert f"get_judgement with {wrong['evaluation_id']}" in wrong["next"]
    service.world.drain()
    wrong = await ask(client, "get_judgement", evaluation_id=wrong["evaluation_id"])
    assert (wrong["state"], wrong["verdict"], wrong["champion"]) == ("settled", "INCORRECT_VALUES", False)
    assert "The judge said INCORRECT_VALUES at correctness" in wrong["evidence"]
    assert "Repair" in wrong["next"]

    told: list[str | None] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    judging = await ask(client, "judge_kernel", problem_id=problem, source=SOURCES[0], by="tester", wait_s=0)
    waiting = asyncio.create_task(
        client.call_tool(
            "get_judgement", {"evaluation_id": judging["evaluation_id"], "wait_s": 60}, progress_callback=tell
        )
    )
    await service.followed(1)
    await asyncio.to_thread(service.world.drain)
    proved = (await waiting).structured_content
    assert proved is not None
    assert proved["champion"] is True
    assert proved["speedup"]["confirmed"] is True
    assert "times as fast as the fastest baseline" in proved["evidence"]
    assert any("is the champion" in (line or "") for line in told)
    file = await ask(client, "best_kernel", problem_id=problem, form="file")
    assert "class ModelNew" in file["text"]
    assert "hidden" not in file["text"], "the held-out workload"
    assert "--check" in file["next"]
    kernel = await ask(client, "best_kernel", run_id=proved["run_id"])
    assert kernel["text"] == SOURCES[0]
    known = await ask(client, "describe_problem", problem_id=problem)
    assert [one["by"] for one in known["champions"]] == ["external:tester"]
    assert name in [one["name"] for one in (await ask(client, "find_problems", text=name))["problems"]]


async def _search(service: Service, client: Client) -> None:
    with_problem = service.world.start()  # stores the problem, too
    service.world.drain()
    run = await ask(client, "start_run", problem_id=with_problem.problem_id, candidates=3, proposers=["synthesiser"])
    assert run["budget"] == {"candidates": 3}
    assert run["end_reason"] is None
    service.world.drain()
    ended = await ask(client, "run_state", run_id=run["run_id"])
    assert ended["end_reason"] is not None
    assert ended["recent"]
    assert "give seconds" in await refused(client, "resume_run", run_id=run["run_id"])
    goes_on = await ask(client, "resume_run", run_id=run["run_id"], candidates=40)
    assert goes_on["budget"]["candidates"] == 43
    assert goes_on["end_reason"] is None
    assert (await ask(client, "stop_run", run_id=run["run_id"]))["status"] == "cancelled"


def test_a_run_that_ended_by_its_budget_without_a_kernel_may_get_more() -> None:
    ended = {"end_reason": "budget", "champion_id": None, "best_id": None}
    assert "resume_run with more seconds" in next_step(ended)
    assert "Fix the problem" in next_step({**ended, "end_reason": "problem_refused"})


def test_refusals_say_what_to_do(service: Service) -> None:
    async def session() -> None:
        async with service.client("http", service.key("read")) as client:
            words = await refused(client, "submit_problem", name="x", source=PROBLEM)
            assert "scope 'submit'" in words
            assert "Ask a manager" in words
            assert "describe_problem" in await refused(client, "run_state", run_id="run_none")
            assert "exactly one" in await refused(client, "best_kernel")
            assert "wait_s" in await refused(client, "run_state", run_id="run_none", wait_s=1000)
        async with service.client("http", service.key("submit")) as client:
            stored = await ask(client, "submit_problem", name="fresh", source=f"{PROBLEM}# without a champion\n")
            run = await ask(client, "start_run", problem_id=stored["problem_id"], candidates=1)
            assert "has passed yet" in await refused(client, "best_kernel", run_id=run["run_id"])
            await ask(client, "stop_run", run_id=run["run_id"])
            assert "it has ended. No kernel passed" in await refused(client, "best_kernel", run_id=run["run_id"])
            words = await refused(client, "submit_problem", name="x", source="x = 1\nclass Model(: pass\n")
            assert "It is about line 2 of the source." in words
            words = await refused(client, "start_run", problem_id="prob_none", proposers=["nobody"])
            assert "no Proposer named 'nobody'" in words
        with write_session(service.engine) as s:
            limited = create_project(s, "limited", quota=Quota(runs_per_day=1))
            key = create_key(s, limited.id, name="limited", scope="submit", created_by="test")[1]
        async with service.client("http", key) as client:
            stored = await ask(client, "submit_problem", name="x", source=PROBLEM)
            given = {"problem_id": stored["problem_id"], "source": SOURCES[0], "wait_s": 0}
            await ask(client, "judge_kernel", **given)
            words = await refused(client, "judge_kernel", **given)
            assert "1 of 1 Runs of today" in words
            assert "call the tool again" in words

    asyncio.run(session())


def test_keys_are_asked_for_as_in_rest(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with httpx2.Client(timeout=60, trust_env=False) as client:
        answered = client.post(f"{service.url}/mcp", json=asked)
        assert (answered.status_code, answered.headers["www-authenticate"]) == (401, "Bearer")
        foreign = {"origin": "https://elsewhere.example", "authorization": f"Bearer {OPERATOR}"}
        assert client.post(f"{service.url}/mcp", json=asked, headers=foreign).status_code == 403
        assert client.get(f"{service.url}/mcp", headers={"authorization": f"Bearer {OPERATOR}"}).status_code == 405
    assert commands.run(["mcp", "--server", service.url]) == ExitCode.INTERNAL
    assert "WARPWRIGHT_API_KEY" in capfd.readouterr().err


def test_a_stranger_finds_nothing_with_any_tool(service: Service) -> None:
    run = service.world.start()
    service.world.drain()
    candidate = service.world.run(run.id).champion_id
    with write_session(service.engine) as s:
        stranger = create_project(s, "strangers")
        key = create_key(s, stranger.id, name="theirs", scope="manage", created_by="test")[1]
        found = s.scalars(select(EvaluationRow.id).where(EvaluationRow.candidate_id == candidate)).first()
    given = {"problem_id": run.problem_id, "run_id": run.id, "evaluation_id": found, "source": SOURCES[0]}

    async def session() -> None:
        async with service.client("http", key) as client:
            for tool in (await client.list_tools()).tools:
                needed = {name: given[name] for name in tool.input_schema.get("required", ()) if name in given}
                needed |= {"run_id": run.id} if tool.name == "best_kernel" else {}
                needed |= {"seconds": 1} if tool.name == "resume_run" else {}
                if tool.name in ("find_problems", "submit_problem"):
                    continue
                assert "with this id" in await refused(client, tool.name, **needed), tool.name
            assert (await ask(client, "find_problems"))["problems"] == []

    asyncio.run(session())


def test_many_that_wait_hold_no_thread_and_load_no_torch(service: Service) -> None:
    run = service.world.start()

    async def session() -> None:
        key = service.key("submit")
        headers = {"authorization": f"Bearer {key}"}
        async with service.client("http", key) as client:
            waiting = [
                asyncio.create_task(ask(client, "run_state", run_id=run.id, wait_s=60)) for _ in range(45)
            ]  # more than the threads of all routes
            await service.followed(45)
            async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
                assert (await http.get(f"{service.url}/api/v1/problems")).status_code == 200
            await ask(client, "stop_run", run_id=run.id)
            assert {(await one)["status"] for one in waiting} == {"cancelled"}

    asyncio.run(session())
    maps = Path(f"/proc/{service.pid}/maps").read_text()
    assert "libtorch" not in maps
    assert "python" in maps
