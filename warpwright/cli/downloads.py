"""`warpwright download`: a kernel as a file or folder, or the recording of a whole run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from warpwright.api.words import DeviceKind
from warpwright.cli.console import out, print_json
from warpwright.cli.files import unpack, write_bytes, write_text
from warpwright.cli.sessions import open_session
from warpwright.errors import BadUsage

Form = Literal["py", "package", "hf-kernel", "kernelbench", "gpumode", "flashinfer", "sol", "zip"]
TEXTS = ("py", "gpumode")
"""Formats that are one text; the others are archives."""


def download(
    what: str, kind: DeviceKind, form: Form, output: Path | None, *, server: str | None, data: Path | None, json: bool
) -> None:
    """Save the kernel of a run or a problem, or print its text. Raises WarpwrightError."""
    if what.partition("_")[0] not in ("run", "prob"):
        raise BadUsage(f"{what!r} is neither a run (run_...) nor a problem (prob_...)")
    if form == "zip":
        _download_recording(what, output, server, data, json=json)
        return
    with open_session(server, data) as session:
        if what.startswith("run_"):
            file = session.client.download_run(what, format=form)
        else:
            file = session.client.download_problem(what, device=kind, format=form)
    if form not in TEXTS:
        _save_folder(what, output, file, json=json)
        return
    text = file.decode("utf-8")
    saved = write_text(output, text) if output is not None else None
    if json:
        print_json({"id": what, "file": str(saved) if saved else None, "source": None if saved else text})
    elif saved is not None:
        out.print(str(saved), markup=False)
    else:
        sys.stdout.write(text)


def _save_folder(what: str, output: Path | None, data: bytes, *, json: bool) -> None:
    """Unpack a package, or keep it as it is where a name with .zip is given."""
    saved = write_bytes(output, data) if output and output.suffix == ".zip" else unpack(output, data)
    if json:
        print_json({"id": what, "file": str(saved)})
    else:
        out.print(str(saved), markup=False)


def _download_recording(run: str, output: Path | None, server: str | None, data: Path | None, *, json: bool) -> None:
    """Save the recording of a run. A zip goes to a file, never to a terminal."""
    if not run.startswith("run_"):
        raise BadUsage("--format zip needs a run (run_...)")
    path = output or Path(f"{run}.zip")
    with open_session(server, data) as session:
        recording = session.client.download_recording(run)
    saved = write_bytes(path, recording)
    if json:
        print_json({"id": run, "file": str(saved)})
    else:
        out.print(str(saved), markup=False)
