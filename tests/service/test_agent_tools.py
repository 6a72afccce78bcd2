"""The tools of agents without a service behind them: who calls, and errors while they wait. No CPU to speak of."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp.server.mcpserver.exceptions import ToolError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from service.agents.tools import Tools
from service.agents.waiting import wait_for
from service.identity.principal import LOCAL, Principal
from service.identity.principal import Scope as Rights
from service.streams.frames import Frame


class Api:
    """Takes kernels and then refuses everything."""

    def __init__(self) -> None:
        self.seen: list[Headers] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(Headers(scope=scope))
        made = JSONResponse({"id": "eval_1", "run_id": "run_1"}, 201)
        refused = JSONResponse({"detail": "too many requests"}, 429)
        await (made if scope["path"].endswith("/evaluations") else refused)(scope, receive, send)


def tools(api: Api, who: Principal, **headers: str) -> tuple[Tools, Any]:
    """Return the tools and the context of a call."""
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "headers": lines, "principal": who, "address": "192.0.2.7"}
    context = SimpleNamespace(request_context=SimpleNamespace(request=Request(scope)))
    return Tools(api, cast("Any", None)), context


def test_a_browsers_session_is_refused() -> None:
    """The calls within would lose its cookie, and a service without keys would take them for local ones."""
    who = Principal(project_id="p", scope=Rights.READ, actor="key", credential="s", csrf_token="t")
    asked, context = tools(api := Api(), who, cookie="session=x")
    with pytest.raises(ToolError, match="no browser's session: send an API key"):
        asyncio.run(asked.find_problems(context))
    assert api.seen == []


def test_forwarded_requests_stay_forwarded() -> None:
    given = {"x_forwarded_for": "192.0.2.7", "forwarded": "for=192.0.2.7", "x_real_ip": "192.0.2.7", "via": "1.1 proxy"}
    asked, context = tools(api := Api(), LOCAL, authorization="Bearer KEY", cookie="session=x", **given)
    with pytest.raises(ToolError):
        asyncio.run(asked.find_problems(context))
    (headers,) = api.seen
    wanted = {name.replace("_", "-"): value for name, value in given.items()}
    assert {name: headers.get(name) for name in wanted} == wanted
    assert headers["authorization"] == "Bearer KEY"
    assert "cookie" not in headers


def test_an_error_while_a_kernel_is_judged_names_the_evaluation() -> None:
    asked, context = tools(Api(), LOCAL)
    with pytest.raises(ToolError, match=r"(?s)too many requests.*The evaluation is eval_1: call get_judgement"):
        asyncio.run(asked.judge_kernel(context, "prob_1", "class ModelNew: ..."))


class Events:
    """A hub whose runs have an event every 0.1 s of a clock that only it moves."""

    def __init__(self) -> None:
        self.now, self.closed, self.lagging = 0.0, False, False

    @contextlib.contextmanager
    def subscribe(self, run_id: str, known: int, *, owner: str | None) -> Iterator[Events]:
        yield self

    async def take(self, timeout_s: float) -> list[Frame]:
        assert timeout_s > 0
        self.now += min(0.1, timeout_s)
        return [Frame(seq=1, kind="run.unknown", data=b'id: 1\ndata: {"data": {}}\n\n')]


def waited(looks: list[int | ToolError]) -> tuple[int, Events, list[int | ToolError]]:
    """Wait 10 s for the value 3; return the last value, the events and the looks that are left."""
    events = Events()

    async def read() -> int:
        found = looks.pop(0)
        if isinstance(found, ToolError):
            raise found
        return found

    async def wait() -> int:
        asyncio.get_running_loop().time = lambda: events.now  # type: ignore[method-assign]
        hub, context = cast("Any", events), cast("Any", None)
        return await wait_for(
            hub, "run_1", read, 0, lambda value: value == 3, known=0, owner=None, wait_s=10.0, context=context
        )

    return asyncio.run(wait()), events, looks


def test_a_wait_looks_at_most_once_a_second() -> None:
    value, events, left = waited([1] * 100)
    assert value == 1
    assert events.now == pytest.approx(10.0)
    assert 9 <= 100 - len(left) <= 10


def test_a_look_that_fails_ends_no_wait() -> None:
    value, events, left = waited([1, ToolError("too many requests"), 2, 3, 9])
    assert (value, left) == (3, [9])
    assert events.now == pytest.approx(4.0, abs=0.5)
    assert waited([1, *[ToolError("too many requests")] * 20])[0] == 1
