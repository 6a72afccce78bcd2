"""A Redis server of the test's own: the real one where its program is installed, else Valkey, which speaks the same."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.valkey import valkey

START_S = 60.0


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Start a server on a free loopback port; give its redis:// URL; stop it at the end."""
    program = shutil.which("redis-server")
    if program is None:
        with valkey() as url:
            yield url
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _await(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


def _await(port: int) -> None:
    deadline = time.monotonic() + START_S
    with redis.Redis(port=port) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "Redis did not start"
                time.sleep(0.02)
            else:
                return
