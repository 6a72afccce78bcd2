"""`warpwright mcp` and `warpwright skill`, for coding agents."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import threading
from pathlib import Path

from warpwright.agents.skill import write_skill
from warpwright.cli.console import out, print_json
from warpwright.cli.device import every_worker, read_device
from warpwright.cli.readiness import check_ready
from warpwright.cli.sessions import Session, open_session
from warpwright.errors import ExitCode, Interrupted, Missing, WarpwrightError


class Readiness:
    """Examines the judge while the stack starts: agents give a server seconds to come up, and torch loads for long."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._failure: WarpwrightError | None = None

    def start(self, folder: Path) -> None:
        """Begin in a thread."""
        threading.Thread(target=self._examine, args=(folder,), name="readiness", daemon=True).start()

    def _examine(self, folder: Path) -> None:
        try:
            check_ready(self._device, folder)
        except WarpwrightError as error:
            self._failure = error

    def guard(self, session: Session) -> Session:
        """Return the session with a check that also raises what the examination found, so that tools tell it."""

        def check() -> None:
            session.check()
            if self._failure is not None:
                raise self._failure

        return dataclasses.replace(session, check=check)


def mcp(server: str | None, data: Path | None) -> ExitCode:
    """Serve the tools until the agent closes its end. Raises WarpwrightError."""
    if importlib.util.find_spec("mcp") is None:
        raise Missing("the MCP server needs the package mcp: pip install 'mcp>=2.3', or connect to /mcp of a service")
    stdio = importlib.import_module("warpwright.agents.stdio")  # it loads pydantic, which no other command needs
    readiness = Readiness(read_device(None))
    try:
        with open_session(server, data, workers=every_worker(), before_start=readiness.start) as session:
            code: ExitCode = stdio.serve(readiness.guard(session))
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
