"""`warpwright mcp`: the service's MCP server over standard input and output, for agents that start programs.

The tools are the service's own: requests and progress are passed on, so both transports answer alike.
"""

from __future__ import annotations

import threading
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from warpwright import __version__
from warpwright.cli.sessions import Session
from warpwright.errors import ExitCode, ServiceFailed, WarpwrightError

ANSWER_S = 330.0
"""Longest silence of a tool: it waits for five minutes at most."""
TIMEOUT = httpx2.Timeout(30.0, read=ANSWER_S)


class Bridge:
    """Passes requests on to a service. Each has a connection of its own, so a restarted service is found again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._url = f"{session.client.url}/mcp"

    async def greeting(self) -> str:
        """Return the service's instructions. Raises WarpwrightError."""
        found = await self._ask(_instructions)
        return str(found)

    async def list_tools(self, _: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        """List the service's tools."""
        listed: ListToolsResult = await self._ask(lambda service: service.list_tools())
        return listed

    async def call_tool(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        """Call a tool of the service. What keeps it from answering becomes the tool's error."""

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(progress, total, message)

        try:
            answered: CallToolResult = await self._ask(
                lambda service: service.call_tool(params.name, params.arguments, progress_callback=tell)
            )
        except WarpwrightError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return answered

    async def _ask(self, request: Any) -> Any:
        """Return a request's answer. Raises WarpwrightError, with what to do."""
        await anyio.to_thread.run_sync(self._session.check)
        client = self._session.client.http
        key = {name: value for name, value in client.headers.items() if name == "authorization"}
        try:
            async with (
                httpx2.AsyncClient(headers=key, timeout=TIMEOUT, trust_env=False) as http,
                Client(streamable_http_client(self._url, http_client=http)) as service,
            ):
                return await request(service)
        except (MCPError, httpx2.HTTPError, ExceptionGroup) as error:
            raise ServiceFailed(
                f"the service at {self._session.client.url} did not answer: {_words(error)}. See that it runs and "
                "that WARPWRIGHT_API_KEY holds a valid key if it asks for one; then call the tool again"
            ) from error


async def _instructions(service: Client) -> str:
    return service.instructions or ""


def _words(error: BaseException) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


async def _serve(bridge: Bridge) -> None:
    server: Server[Any] = Server(
        "warpwright",
        version=__version__,
        title="Warpwright",
        instructions=await bridge.greeting(),
        on_list_tools=bridge.list_tools,
        on_call_tool=bridge.call_tool,
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve(session: Session) -> ExitCode:
    """Serve until the input ends. Raises WarpwrightError. An interrupt leaves the thread behind, which reads still."""
    failures: list[WarpwrightError] = []

    def run() -> None:
        try:
            anyio.run(_serve, Bridge(session))
        except WarpwrightError as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="mcp", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return ExitCode.OK
