"""Capture the slowest parts of a user's script as problem files.

The script runs as it always does: with the user's Python, as the user, outside of the service and of this process. The
files of `in_script/` run inside of it; they are a program of its own and no modules of this room, which never loads
torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from warpwright.cli.console import say
from warpwright.cli.files import check_output
from warpwright.errors import BadUsage, ExitCode, Interrupted

_PROGRAM = Path(__file__).parent / "in_script" / "main.py"
STOP_S = 10.0


def capture(
    script: Path,
    arguments: Sequence[str],
    *,
    output: Path,
    python: str | None,
    only: str | None,
    most: int,
    largest: int,
    seconds: float,
    module: bool = False,
    overwrite: bool = False,
) -> ExitCode:
    """Run the script and write problem files. Exit 0 with at least one, 1 without any. Raises BadUsage.

    `module`: the script is a module's name, as for `python -m`. Files that were edited stay unless `overwrite` is set.
    """
    _check_script(script, module)
    check_output(output, folder=True)
    if only is not None and not is_import_path(only):
        raise BadUsage(f"--only names a class or function as package.module:Name, not {only!r}")
    options = {
        "script": str(script if module else script.absolute()), "module": module, "arguments": list(arguments),
        "output": str(output.absolute()), "overwrite": overwrite, "only": only, "most": most, "largest": largest,
    }  # fmt: skip
    command = [python or sys.executable, str(_PROGRAM), json.dumps(options)]
    written = output.absolute() / "parts.json"
    before = _written_ns(written)
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        raise BadUsage(f"{command[0]} cannot be run: {error.strerror or error}. Name a Python with --python") from error
    with process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise BadUsage(f"{script} ran longer than {seconds:g} s: --seconds allows more") from error
        except Interrupted:
            try:
                process.wait(STOP_S)  # the terminal sent it the interrupt, too
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if code == 0 and _written_ns(written) == before:
        say(f"{script} ended its process itself (os._exit, or a program in its place), so nothing is written")
        return ExitCode.NOT_PASSED
    return ExitCode.OK if code == 0 else ExitCode.NOT_PASSED


def _check_script(script: Path, module: bool) -> None:
    """Raise BadUsage for what is neither a Python source nor, with `module`, a module's name."""
    is_name = all(part.isidentifier() for part in str(script).split(".")) and script.suffix != ".py"
    if module:
        if not is_name:
            raise BadUsage(f"-m takes a module's name, as for python -m (package.main), not {str(script)!r}")
        return
    if not script.is_file():
        hint = f"; a module's name needs -m: warpwright capture -m {script}" if is_name and script.suffix else ""
        raise BadUsage(f"{script}: no such script{hint}")
    if b"\0" in script.read_bytes():
        raise BadUsage(f"{script} is no Python source")


def _written_ns(path: Path) -> int | None:
    """Return when a file was last written, None for one that is absent."""
    return path.stat().st_mtime_ns if path.is_file() else None


def is_import_path(text: str) -> bool:
    """Return whether a text has the form package.module:Name."""
    module, colon, name = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))
