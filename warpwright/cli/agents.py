"""`warpwright mcp` and `warpwright skill`, for coding agents."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from pathlib import Path

from warpwright.agents.skill import write_skill
from warpwright.cli.console import out, print_json
from warpwright.cli.device import every_worker, read_device
from warpwright.cli.readiness import check_ready
from warpwright.cli.sessions import open_session
from warpwright.errors import ExitCode, Interrupted, Missing


def mcp(server: str | None, data: Path | None) -> ExitCode:
    """Serve the tools until the agent closes its end. Raises WarpwrightError."""
    if importlib.util.find_spec("mcp") is None:
        raise Missing("the MCP server needs the package mcp: pip install 'mcp>=2.3', or connect to /mcp of a service")
    stdio = importlib.import_module("warpwright.agents.stdio")  # it loads pydantic, which no other command needs
    before = functools.partial(check_ready, read_device(None))
    try:
        with open_session(server, data, workers=every_worker(), before_start=before) as session:
            code: ExitCode = stdio.serve(session)
            return code
    except Interrupted:
        os._exit(int(ExitCode.INTERRUPTED))  # a thread still reads the input, and cannot be woken


def skill(folder: Path, *, json: bool) -> ExitCode:
    """Write the skill folder and print its address. Raises BadUsage."""
    written = write_skill(folder)
    if json:
        print_json({"folder": str(written)})
    else:
        out.print(str(written), markup=False)
    return ExitCode.OK
