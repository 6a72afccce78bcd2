"""A Python that has torch loaded already, as an executable: for commands that run a program with a user's Python.

The executable hands its arguments, folder, environment and output to the test's process, which runs the program in a
process of the fork server of `scripts`.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.reduction import DupFd
from pathlib import Path

from tests.support.scripts import FORKS

CLIENT = """#!{python} -SE
import json, os, socket, sys

asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [1, 2])
    server.sendall(asked)
    status = server.recv(1)
sys.exit(status[0] if status else 1)
"""


@contextlib.contextmanager
def warm_python(folder: Path) -> Iterator[Path]:
    """Write the executable into a folder, and serve it."""
    address, executable = str(folder / "socket"), folder / "python"
    executable.write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
    executable.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        server = threading.Thread(target=_serve, args=(listening,), daemon=True)
        server.start()
        yield executable
        listening.shutdown(socket.SHUT_RDWR)
        server.join(10)


def _serve(listening: socket.socket) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # it was shut down
            return
        with client:
            size, fds, _, _ = socket.recv_fds(client, 8, 2)
            with client.makefile("rb") as stream:
                asked = json.loads(stream.read(int.from_bytes(size, "big")))
            process = FORKS.Process(target=_run, args=([_Output(fd) for fd in fds], *asked), daemon=True)
            process.start()
            for fd in fds:
                os.close(fd)
            process.join()
            code = process.exitcode or 0
            client.sendall(bytes([code if code >= 0 else 128 - code]))


class _Output:
    """A descriptor that is sent with a process as it starts."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __reduce__(self) -> tuple[object, ...]:
        return _detached, (DupFd(self._fd),)


def _detached(sent: DupFd) -> int:
    return int(sent.detach())


def _run(outputs: Sequence[int], arguments: list[str], folder: str, environment: Mapping[str, str]) -> None:
    """Be the interpreter that runs a program."""
    for number, fd in enumerate(outputs, 1):
        os.dup2(fd, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).parent))
    runpy.run_path(arguments[0], run_name="__main__")
