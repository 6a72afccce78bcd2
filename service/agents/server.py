"""The MCP server of the application: streamable HTTP at /mcp, without sessions, so that any process may answer."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator

from mcp.server import MCPServer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.agents.tools import ANNOTATIONS, Tools
from service.context import Context

PATH = "/mcp"
VERSION = "1.0.0"
INSTRUCTIONS = """\
Warpwright turns a slow PyTorch operation into a kernel that is proved right and proved faster.

The loop: find_problems or submit_problem, then describe_problem for the judge's rules and what earlier runs found.
Write a kernel and judge_kernel it: the evidence says what to repair or what limits it. start_run lets Warpwright
search by itself, run_state follows it, resume_run adds budget, and best_kernel gives the module to take home. A speedup
counts only where `confirmed` is true. Every result's `next` says what to call then.
"""


class AgentServer:
    """The server and its route. `running` belongs to the application's lifespan; it may be entered again later."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._server = MCPServer("warpwright", title="Warpwright", instructions=INSTRUCTIONS, version=VERSION)
        tools = Tools(app, context)
        for name, hints in ANNOTATIONS.items():
            method = getattr(tools, name)
            title = name.replace("_", " ").capitalize()
            self._server.tool(
                name=name,
                title=title,
                description=inspect.getdoc(method),
                annotations=ToolAnnotations(title=title, **hints),
                structured_output=True,
            )(method)
        self._manager: StreamableHTTPSessionManager | None = None  # one for each time that the application runs
        self.route = Route(PATH, endpoint=_Endpoint(self), methods=["POST"], name="mcp")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for the length of the block."""
        # Hosts and origins are checked for the whole application, by its access layer.
        checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, transport_security=checked)
        self._manager = self._server.session_manager
        try:
            async with self._manager.run():
                yield
        finally:
            self._manager = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert self._manager is not None, "the application's lifespan has not begun"
        scope["route"] = self.route  # for the log and the metrics
        await self._manager.handle_request(scope, receive, send)


class _Endpoint:
    """An ASGI application; a bound method would be taken for a route's function."""

    def __init__(self, server: AgentServer) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server.answer(scope, receive, send)
