"""Find a service: the named one, the one that runs on the data folder, or an embedded one of our own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright import paths
from warpwright.api import Client
from warpwright.cli.console import say
from warpwright.errors import Unreachable, WarpwrightError
from warpwright.stack.data_folder import DataFolder, RunningStack
from warpwright.stack.supervisor import Stack


@dataclass(frozen=True, slots=True)
class Session:
    """A client, and a check that raises if its embedded stack is down. `data` is None for a named server."""

    client: Client
    check: Callable[[], None]
    data: Path | None


@contextlib.contextmanager
def open_session(
    server: str | None,
    data: Path | None,
    *,
    workers: Sequence[str] = (),
    gpu: str | None = None,
    before_start: Callable[[Path], None] = lambda _: None,
) -> Iterator[Session]:
    """Connect to a service for the length of a `with` block.

    `server` (or $WARPWRIGHT_SERVER) takes precedence. Else a stack that runs on the data folder is used. Else one is
    started with `workers` and `gpu`, as Stack takes them, and stopped at the end; `before_start` gets its folder. If
    workers are wanted and another short-lived stack holds the folder, this waits for its end: two at once would disturb
    each other's timing.
    """
    server = server or os.environ.get("WARPWRIGHT_SERVER")
    if server:
        with Client(server) as client:
            yield Session(client, lambda: None, None)
        return
    folder = DataFolder((data or paths.default_data_dir()).absolute())
    if not folder.acquire():
        running = folder.running()
        if running is not None and (running.stays or not workers) and _answers(running):
            with Client(running.url) as client:
                yield Session(client, lambda: None, folder.path)
            return
        owner = f" (process {running.pid})" if running else ""
        say(f"Waiting for another warpwright{owner}, which uses {folder.path}. Use --data DIR to run at the same time.")
        folder.acquire(wait=True)
    try:
        before_start(folder.path)
        with Stack(folder, workers=workers, gpu=gpu) as stack, Client(stack.url) as client:
            yield Session(client, stack.check, folder.path)
    finally:
        folder.release()


def _answers(stack: RunningStack) -> bool:
    with Client(stack.url, timeout_s=5.0) as client:
        try:
            client.get_readiness()
        except Unreachable:
            return False
        except WarpwrightError:
            return True
    return True
