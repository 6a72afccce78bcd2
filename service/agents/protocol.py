"""The MCP server itself: every tool with its hints, and the manager that answers requests while it runs."""

from __future__ import annotations

import inspect

from mcp.server import MCPServer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from starlette.types import ASGIApp

from service.agents.tools import ANNOTATIONS, Tools
from service.context import Context

VERSION = "1.0.0"
INSTRUCTIONS = """\
Warpwright turns a slow PyTorch operation into a kernel that is proved right and proved faster.

The loop: find_problems or submit_problem, then describe_problem for the judge's rules and what earlier runs found.
Write a kernel and judge_kernel it: the evidence says what to repair or what limits it. start_run lets Warpwright
search by itself, run_state follows it, resume_run adds budget, and best_kernel gives the module to take home. A speedup
counts only where `confirmed` is true. Every result's `next` says which tool to call next.
"""


def manager(app: ASGIApp, context: Context, path: str) -> StreamableHTTPSessionManager:
    """Make the server of an application; the manager can run once."""
    server = MCPServer("warpwright", title="Warpwright", instructions=INSTRUCTIONS, version=VERSION)
    tools = Tools(app, context)
    for name, hints in ANNOTATIONS.items():
        method = getattr(tools, name)
        title = name.replace("_", " ").capitalize()
        server.tool(
            name=name,
            title=title,
            description=inspect.getdoc(method),
            annotations=ToolAnnotations(title=title, **hints),
            structured_output=True,
        )(method)
    # Hosts and origins are checked for the whole application, by its access layer.
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(streamable_http_path=path, stateless_http=True, transport_security=checked)
    return server.session_manager
