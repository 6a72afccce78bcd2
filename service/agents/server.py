"""The MCP server of the application: streamable HTTP at /mcp, without sessions, so that any process may answer.

The first request imports and starts it: the packages of the protocol take a third of a service's start.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.context import Context

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
_PROTOCOL = "service.agents.protocol"


class AgentServer:
    """The server and its route. `running` belongs to the application's lifespan; it may be entered again later."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app, self._context = app, context
        self._running: _Running | None = None
        self.route = Route(PATH, endpoint=_Endpoint(self), methods=["POST"], name="mcp")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for the length of the block."""
        async with anyio.create_task_group() as group:
            self._running = _Running(self._app, self._context, group)
            try:
                yield
            finally:
                self._running = None
                group.cancel_scope.cancel()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert self._running is not None, "the application's lifespan has not begun"
        scope["route"] = self.route  # for the log and the metrics
        manager = await self._running.manager()
        await manager.handle_request(scope, receive, send)


class _Running:
    """One lifespan: a manager from its first request to its end."""

    def __init__(self, app: ASGIApp, context: Context, group: TaskGroup) -> None:
        self._app, self._context, self._group = app, context, group
        self._lock = anyio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None

    async def manager(self) -> StreamableHTTPSessionManager:
        """Return the manager, which the first caller starts."""
        async with self._lock:
            if self._manager is None:
                self._manager = await self._group.start(self._run)
            return self._manager

    async def _run(self, *, task_status: TaskStatus[StreamableHTTPSessionManager]) -> None:
        protocol = await anyio.to_thread.run_sync(importlib.import_module, _PROTOCOL)
        manager: StreamableHTTPSessionManager = protocol.manager(self._app, self._context, PATH)
        gc.freeze()  # as `server.freeze_heap`, which came before these objects
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()


class _Endpoint:
    """An ASGI application; a bound method would be taken for a route's function."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server.answer(scope, receive, send)
