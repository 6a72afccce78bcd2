"""`warpwright mcp` and `warpwright skill`, for coding agents."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
from pathlib import Path

from warpwright.agents.skill import write_skill
from warpwright.cli.console import out, print_json
from warpwright.cli.device import every_worker, read_device
from warpwright.cli.readiness import Examination
from warpwright.cli.sessions import Session, open_session
from warpwright.errors import ExitCode, Interrupted, Missing


def guarded(session: Session, examination: Examination) -> Session:
    """Return the session with a check that also raises what the examination found, so that tools tell it."""

    def check() -> None:
        session.check()
        examination.check()

    return dataclasses.replace(session, check=check)


def mcp(server: str | None, data: Path | None) -> ExitCode:
    """Serve the tools until the agent closes its end. Raises WarpwrightError."""
    if importlib.util.find_spec("mcp") is None:
        raise Missing("the MCP server needs the package mcp: pip install 'mcp>=2.3', or connect to /mcp of a service")
    stdio = importlib.import_module("warpwright.agents.stdio")  # it loads pydantic, which no other command needs
    judge = Examination(read_device(None))  # agents give a server seconds to come up
    try:
        with open_session(server, data, workers=every_worker(), before_start=judge.begin_all) as session:
            code: ExitCode = stdio.serve(guarded(session, judge))
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
