"""Run the application under uvicorn: one listening socket, one line with its address, a stop that ends streams."""

from __future__ import annotations

import gc
import json
import socket
import sys

import uvicorn
from fastapi import FastAPI

from runtime.settings import Settings
from service.context import Context
from service.errors import StartupError

GRACE_S = 5


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one. Raise StartupError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, since asyncio turns Nagle's algorithm off only on such sockets. With it, an answer's second packet
    # waits 40 ms for the client's acknowledgement of the first.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
    except OSError as error:
        sock.close()
        raise StartupError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    sock.set_inheritable(True)
    return sock


def freeze_heap() -> None:
    """Exempt every present object from garbage collection.

    Otherwise every full collection walks over 300,000 objects of libraries and routes, and all requests wait for it for
    a fifth of a second.
    """
    gc.collect()
    gc.freeze()


class Server(uvicorn.Server):
    """Prints its address once it listens, and ends event streams before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, context: Context, url: str) -> None:
        super().__init__(config)
        self._context = context
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            freeze_heap()
            print(json.dumps({"url": self._url}), flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._context.hub.close()
        await super().shutdown(sockets)


def serve(app: FastAPI, settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    sock = listen(settings.host, settings.port)
    host, port = sock.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = Server(config, app.state.context, url)
    try:
        server.run([sock])
    except KeyboardInterrupt:
        return 130
    finally:
        sock.close()
    if not server.started:
        print("the service could not be started; its log says why", file=sys.stderr)
        return 3
    return 0
