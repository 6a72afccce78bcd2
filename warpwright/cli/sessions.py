"""Find a service: the named one, the one that runs on the data folder, or an embedded one of our own."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright import paths
from warpwright.api import Client
from warpwright.cli.console import say
from warpwright.cli.readiness import check_room
from warpwright.errors import BadUsage, StackFailed, Unreachable, WarpwrightError
from warpwright.stack.data_folder import DataFolder, RunningStack
from warpwright.stack.supervisor import Stack

LOOK_S = 0.3
"""Pause between looks at a data folder that another process holds."""


@dataclass(frozen=True, slots=True)
class Session:
    """A client, and a check that raises if its embedded stack is down. `data` is None for a named server.

    `joined` is true for a service that runs for others, too, with workers of its own choice; `stays` for one that
    runs on when they have ended.
    """

    client: Client
    check: Callable[[], None]
    data: Path | None
    joined: bool = False
    stays: bool = False


@contextlib.contextmanager
def open_session(
    server: str | None,
    data: Path | None,
    *,
    workers: Sequence[str] = (),
    gpu: str | None = None,
    threads: str | None = None,
    before_start: Callable[[Path], None] = check_room,
    linger_s: float | None = None,
) -> Iterator[Session]:
    """Connect to a service for the length of a `with` block.

    `server` (or $WARPWRIGHT_SERVER) takes precedence. Else a stack that runs on the data folder and has the workers is
    joined, one that is starting too; its owner stops it only after that. Else one is started with `workers` and `gpu`,
    as Stack takes them; `before_start` gets its folder. It is stopped at the end, once the processes that joined it
    have ended, or after `linger_s`. If the folder's stack lacks a worker, judges with other CPU threads than `threads`
    or is ending, this waits for its end: two at once would disturb each other's timing.
    """
    server = server or os.environ.get("WARPWRIGHT_SERVER")
    if server:
        if not server.startswith(("http://", "https://")):
            raise BadUsage(
                f"a service's address begins with http:// or https://, as http://127.0.0.1:8000: not {server!r}"
            )
        with Client(server) as client:
            yield Session(client, lambda: None, None, joined=True, stays=True)
        return
    folder = DataFolder((data or paths.default_data_dir()).absolute())
    with contextlib.ExitStack() as joined:
        running = _join_or_acquire(folder, workers, gpu, threads, joined)
        if running is not None:
            with Client(running.url) as client:
                check = functools.partial(_check_joined, folder, running)
                yield Session(client, check, folder.path, joined=True, stays=running.stays)
            return
    try:
        before_start(folder.path)
        with Stack(folder, workers=workers, gpu=gpu) as stack, Client(stack.url) as client:
            yield Session(client, stack.check, folder.path)
            folder.withdraw(functools.partial(_tell_wait, linger_s), at_most_s=linger_s)
    finally:
        folder.release()


def _tell_wait(linger_s: float | None) -> None:
    limit = "" if linger_s is None else f" for at most {linger_s:g} s"
    say(f"Another warpwright still uses this stack; waiting for it{limit}. Ctrl-C stops both.")


def _join_or_acquire(
    folder: DataFolder, workers: Sequence[str], gpu: str | None, threads: str | None, joined: contextlib.ExitStack
) -> RunningStack | None:
    """Return the stack that was joined, for as long as `joined` is open; None once the folder is ours.

    A stack that is starting is waited for, and so is the end of one that cannot do the work.
    """
    told, pause = False, threading.Event()
    while not folder.acquire():
        with contextlib.ExitStack() as attempt:
            running = attempt.enter_context(folder.joined())
            if running is not None and running.serves(workers, gpu, threads) and _answers(running):
                joined.push(attempt.pop_all())
                return running
        if running is not None and running.stays and threads not in (None, running.threads):
            raise BadUsage(
                f"the service at {running.url} judges with {running.threads} CPU threads: start it with "
                f"WARPWRIGHT_CPU_THREADS={threads}, or name another folder with --data"
            )
        if running is not None and not told:
            told = True
            say(f"Waiting for another warpwright (process {running.pid}), which uses {folder.path}. Use --data DIR to "
                "run at the same time.")  # fmt: skip
        pause.wait(LOOK_S)
    return None


def _check_joined(folder: DataFolder, stack: RunningStack) -> None:
    """Raise StackFailed if the stack that was joined is down. A restarted service keeps its address."""
    now = folder.running()
    if now is None or now.url != stack.url or not _alive(stack.pid):
        raise StackFailed(
            f"the stack at {stack.url} was stopped by its owner (process {stack.pid}). Finished work is kept: "
            "run the command again, or keep one up with warpwright serve"
        )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _answers(stack: RunningStack) -> bool:
    with Client(stack.url, timeout_s=5.0) as client:
        try:
            client.get_readiness()
        except Unreachable:
            return False
        except WarpwrightError:
            return True
    return True
