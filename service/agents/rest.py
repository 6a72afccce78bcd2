"""Calls of our own REST API within the process, as the caller of a tool: its key, quotas and audit log apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.types import ASGIApp

from service.http.addresses import FORWARDED
from service.identity.principal import Principal

BASE = "http://localhost/api/v1"
MOST_FIELDS = 5
_ADVICE = {
    401: "Set the header Authorization: Bearer KEY in the configuration of this MCP server.",
    403: "That key goes into the configuration of this MCP server.",
    404: "find_problems and describe_problem list the ids that exist.",
    413: "Send a smaller source.",
}


class Caller:
    """The caller of one tool: it sends requests with the caller's key, from the caller's address."""

    def __init__(self, app: ASGIApp, request: Request) -> None:
        self.who: Principal = request.scope["principal"]
        client = (str(request.scope.get("address") or "127.0.0.1"), 0)
        passed_on = ("authorization", *FORWARDED)  # a proxy's request stays one: it may be no local caller
        given = {name: ", ".join(request.headers.getlist(name)) for name in passed_on if name in request.headers}
        self._headers = {"accept": "application/json", **given}
        self._transport = httpx2.ASGITransport(app=app, client=client)

    async def get(self, path: str, /, **query: Any) -> Any:
        """Return the JSON of a GET. Raises ToolError."""
        return (await self._send("GET", path, params=_given(query))).json()

    async def text(self, path: str, /, **query: Any) -> str:
        """Return the text of a GET. Raises ToolError."""
        return (await self._send("GET", path, params=_given(query))).text

    async def post(self, path: str, body: Mapping[str, Any] | None = None, /) -> Any:
        """Return the JSON of a POST; None values are not sent. Raises ToolError."""
        return (await self._send("POST", path, json=None if body is None else _given(body))).json()

    async def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        async with httpx2.AsyncClient(transport=self._transport, headers=self._headers, trust_env=False) as client:
            response = await client.request(method, f"{BASE}{path}", **options)
        if response.is_error:
            raise ToolError(_words(response))
        return response


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _words(response: httpx2.Response) -> str:
    """Return the words of a problem document, its wrong fields, and what to do."""
    problem = response.json()
    lines = [str(problem.get("detail") or problem.get("title"))]
    lines += [f"{one['field']}: {one['message']}" for one in (problem.get("errors") or ())[:MOST_FIELDS]]
    if problem.get("line") is not None:
        lines.append(f"It is about line {problem['line']} of the source.")
    if wait := response.headers.get("retry-after"):
        lines.append(f"Wait {wait} s and call the tool again.")
    if advice := _ADVICE.get(response.status_code):
        lines.append(advice)
    return "\n".join(lines)
