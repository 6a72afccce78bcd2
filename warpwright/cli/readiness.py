"""Refuse work at once that this machine cannot judge, in the words of `warpwright doctor`."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.cli import evaluator_process
from warpwright.cli.device import gpus, kind_of
from warpwright.errors import BadUsage, Missing, WarpwrightError

LEAST_FREE_BYTES = 1 << 30
LEAST_TO_READ_BYTES = 1 << 26
"""A stack that only shows what is there writes little: its database's log, and logs."""
LIMIT_S = 60.0


def check_ready(device: str, folder: Path) -> None:
    """Raise Missing where this device is not there, or kernels for it cannot be judged here."""
    check_place(device, folder)
    check_judge(kind_of(device))


class Examination:
    """Examines the judge in a thread while the stack starts, since torch loads for seconds."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._failure: WarpwrightError | None = None
        self._thread: threading.Thread | None = None

    def begin(self, folder: Path) -> None:
        """Check what takes no time, and begin to examine the judge. Raises Missing."""
        check_place(self._device, folder)
        self._begin(lambda: check_judge(kind_of(self._device)))

    def begin_all(self, folder: Path) -> None:
        """Begin to check everything: for a server that has to come up and then tells what is wrong."""
        self._begin(lambda: check_ready(self._device, folder))

    def _begin(self, examine: Callable[[], None]) -> None:
        def work() -> None:
            try:
                examine()
            except WarpwrightError as error:
                self._failure = error

        self._thread = threading.Thread(target=work, name="examination", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what was found so far."""
        if self._failure is not None:
            raise self._failure

    def wait(self) -> None:
        """Wait for its end, if it has begun. Raises what it found."""
        if self._thread is not None:
            self._thread.join()
        self.check()


def check_place(device: str, folder: Path) -> None:
    """Raise Missing for a GPU that is not there, or a folder that a stack cannot work in."""
    number = 0 if kind_of(device) == "cpu" else int(device.partition(":")[2])
    found = gpus()
    if kind_of(device) == "cuda" and number >= len(found):
        count = f"{len(found)} NVIDIA device{'s' * (len(found) != 1)}"
        have = f"this machine has {count}" if found else "there is no NVIDIA device"
        raise Missing(f"{device}: {have}. Use --device cpu, or --server for a service with a GPU")
    check_disk(folder)


def check_disk(folder: Path, least_bytes: int = LEAST_FREE_BYTES) -> None:
    """Raise Missing where the data folder cannot be written, or its disk is full."""
    problem = disk_problem(folder, least_bytes)
    if problem:
        raise Missing(f"the data folder {folder} {problem}")


def disk_problem(folder: Path, least_bytes: int = LEAST_FREE_BYTES) -> str:
    """Return what keeps the stack from writing to a data folder, with what to do; "" if nothing does."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(place, os.W_OK):
        return "is not writable: set WARPWRIGHT_DATA_DIR (or --data) to another folder"
    free = shutil.disk_usage(place).free
    if free < least_bytes:
        room = f"has {free / 1e9:.1f} GB free and needs {least_bytes / 1e9:.1f}"
        return f"{room}: make room, or set WARPWRIGHT_DATA_DIR (or --data)"
    return ""


def check_room(folder: Path) -> None:
    """Raise Missing where a stack could not even show what is there."""
    check_disk(folder, LEAST_TO_READ_BYTES)


def check_judge(kind: str) -> None:
    """Raise Missing where the judge's own examination says that it cannot judge on this kind of device."""
    try:
        _, output, errors = evaluator_process.capture(["doctor", "--brief", "--json", "-"], timeout_s=LIMIT_S)
        report = json.loads(output)
    except subprocess.TimeoutExpired:
        raise Missing(f"the judge's own checks did not end within {LIMIT_S:.0f} s: see `warpwright doctor`") from None
    except ValueError:
        raise Missing(f"the judge does not start: {(errors or output).strip()[-1000:]}") from None
    if not report[f"can_judge_{kind}"]:
        raise Missing(f"kernels cannot be judged on {kind} here.\n{_words(report['findings'], kind)}")


def _words(findings: Sequence[Mapping[str, Any]], kind: str) -> str:
    needs = ("judging", "cuda") if kind == "cuda" else ("judging",)
    failing = [one for one in findings if not one["ok"] and one["need"] in needs]
    return "\n".join(f"  {one['name']}: {one['found']}. {one['advice']}" for one in failing)


def check_threads(text: str | None) -> None:
    """Raise BadUsage for numbers of CPU threads that this machine does not have."""
    cores = len(os.sched_getaffinity(0))
    for word in (text or "all").split(","):
        if word != "all" and not (word.isdecimal() and 1 <= int(word) <= cores):
            raise BadUsage(
                f"--threads takes numbers from 1 to {cores} (the cores of this machine), or all: not {text!r}"
            )


def check_port(host: str, port: int) -> None:
    """Raise BadUsage where another program listens on a port, or the address is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            used = error.errno == errno.EADDRINUSE
            why = "is in use by another program" if used else f"cannot be listened on: {error.strerror or error}"
            raise BadUsage(f"{host}:{port} {why}. Choose another with --port, or --port 0 for a free one") from error
