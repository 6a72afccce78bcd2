"""The embedded stack: Valkey, the API and the workers as child processes on free loopback ports.

`with Stack(folder) as stack: Client(stack.url)`. The processes are the same programs as in production
(`python -m service`, `python -m workers QUEUE`), configured through WARPWRIGHT_* variables. A nursery forks them, so
that their packages are imported once. One thread starts them, restarts those that die, and stops them. They die with
this process, however it ends (see `die_with_parent`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from warpwright import paths
from warpwright.api import Client
from warpwright.errors import Missing, StackFailed, WarpwrightError
from warpwright.stack import children
from warpwright.stack.children import Child, Nursery
from warpwright.stack.data_folder import DataFolder
from warpwright.stack.valkey import Valkey, find_server

READY_S = 60.0
VALKEY_S = 10.0
GRACE_S = 8.0
WATCH_S = 0.2
LOG_LIMIT_BYTES = 20 * 2**20
MAX_RESTARTS = 5
RESTART_WINDOW_S = 60.0
BUILDERS = frozenset({"build", "gpu-build"})
MOST_BUILDERS = 4
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
SHARED_MODULES = ("service.app", "service.server", "workers.app", "celery.apps.worker", "celery.worker.consumer")
"""What the programs of the stack import, for seconds; the nursery imports it once."""
TIMING_PART = "worker-cpu"
"""The part that may use every processor; the others keep off the judge's core."""


@dataclass(slots=True)
class Part:
    """One program of the stack. It is restarted when it dies, up to a limit.

    The nursery forks one that has a `module`; `command` are its arguments then.
    """

    name: str
    command: Sequence[str]
    module: str = ""
    stdin: bytes | None = None
    child: Child | None = None
    deaths: list[float] = field(default_factory=list)

    def died_too_often(self) -> bool:
        """Record a death; return True after more than MAX_RESTARTS within RESTART_WINDOW_S."""
        now = time.monotonic()
        self.deaths = [at for at in self.deaths if now - at < RESTART_WINDOW_S] + [now]
        return len(self.deaths) > MAX_RESTARTS


def shared_cpus() -> set[int]:
    """Return the processors for all parts but timing. The last are the judge's alone, if any is left: one, or as many
    as WARPWRIGHT_CPU_THREADS says."""
    if not hasattr(os, "sched_getaffinity"):
        return set()
    cpus, asked = os.sched_getaffinity(0), (os.environ.get("WARPWRIGHT_CPU_THREADS") or "1").partition(",")[0]
    timed = int(asked) if asked.isdecimal() else len(cpus)
    return set(sorted(cpus)[:-timed]) or cpus


def workers_for(name: str) -> int:
    """Return how many workers serve a queue: compilers get a quarter of the processors, the others one worker each."""
    return max(1, min(MOST_BUILDERS, len(shared_cpus()) // 4)) if name in BUILDERS else 1


def arguments_of(workers: Sequence[str]) -> list[list[str]]:
    """Return the arguments of each worker. Where the CPU's judge has one core beside the timed one, it also builds: to
    start another judge for that would take this core for seconds."""
    if len(shared_cpus()) > 1 or not {"cpu", "build"} <= set(workers):
        return [[name] for name in workers]
    return [["cpu", "--builds"] if name == "cpu" else [name] for name in workers if name != "build"]


def installed() -> bool:
    """Return True if the stack's rooms and packages are installed (a wheel alone carries neither)."""
    rooms = all((paths.checkout() / room / "__main__.py").is_file() for room in ("service", "workers"))
    return rooms and all(importlib.util.find_spec(name) for name in ("fastapi", "celery", "sqlalchemy"))


class Stack:
    """An embedded stack on one data folder. The caller holds the folder's lock.

    `workers` names the queues to serve (see `python -m workers --help`); with none, the API answers and no job runs.
    `gpu` ("cuda:N") is the device of a GPU worker. `url` is the service's address once the stack is up.
    Raises StackFailed, with the end of the failing part's log.
    """

    def __init__(
        self,
        folder: DataFolder,
        *,
        workers: Sequence[str],
        host: str = "127.0.0.1",
        port: int = 0,
        stays: bool = False,
        gpu: str | None = None,
    ) -> None:
        if not installed():
            raise Missing(
                "only the command line is installed. Install the stack in a checkout of Warpwright with "
                "pip install -e '.[judge,stack]', or name a running service with --server URL"
            )
        self.url = ""
        self._folder, self._workers, self._stays = folder, tuple(workers), stays
        self._host, self._port, self._gpu = host, port, gpu
        self._run_dir = folder.path / "run"
        self._logs = folder.path / "logs"
        self._valkey = Valkey.choose()
        self._parts: list[Part] = []
        self._nursery: Nursery | None = None
        self._failure: WarpwrightError | None = None
        self._up, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="stack", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._up.wait()
            self.check()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port of the service, once the stack is up."""
        return self._port

    def check(self) -> None:
        """Raise the error that ended the stack, if there is one."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop everything and wait for it. Safe to call twice."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2 * GRACE_S + 5.0)

    # -- The supervising thread: the children die with it ----------------------------------------------------------

    def _supervise(self) -> None:
        try:
            self._start()
            self._folder.publish(self.url, stays=self._stays, workers=self._workers, gpu=self._gpu)
            self._up.set()
            while not self._stopping.wait(WATCH_S):
                for part in self._parts:
                    self._restart_if_dead(part)
        except WarpwrightError as error:
            self._failure = error
        except OSError as error:
            self._failure = StackFailed(f"the embedded stack could not be started: {error}")
        finally:
            self._up.set()
            running = [part.child for part in reversed(self._parts) if part.child is not None]
            children.stop([child for child in running if child.name != "valkey"], grace_s=GRACE_S)
            if self._nursery is not None:
                self._nursery.close(grace_s=GRACE_S)
            children.stop([child for child in running if child.name == "valkey"], grace_s=GRACE_S)
            shutil.rmtree(self._run_dir, ignore_errors=True)

    def _start(self) -> None:
        shutil.rmtree(self._run_dir, ignore_errors=True)
        self._run_dir.mkdir(mode=0o700)
        self._open_nursery()  # it imports while Valkey starts
        self._start_valkey()
        api = self._launch(Part("api", [], module="service"))
        for name, *more in arguments_of(self._workers):  # now, not after the API: they wait for its schema themselves
            for number in range(1, workers_for(name) + 1):
                part = f"worker-{name}" + (f"-{number}" if number > 1 else "")
                self._launch(Part(part, [name, *more], module="workers"))
        self._await_api(api)

    def _open_nursery(self) -> Nursery:
        """Return the nursery, a new one if there is none or it died."""
        if self._nursery is None or not self._nursery.alive():
            log = self._logs / "nursery.log"
            self._nursery = Nursery(SHARED_MODULES, log=log, env=self._environment(), cwd=paths.checkout())
        return self._nursery

    def _start_valkey(self) -> None:
        server = str(find_server())
        for _ in range(3):  # another program may have taken the port meanwhile
            part = Part("valkey", [server, "-"], stdin=self._valkey.configuration(self._run_dir))
            child = self._launch(part)
            if self._poll(self._valkey.answers, VALKEY_S, child):
                return
            children.stop([child], grace_s=1.0)
            self._parts.remove(part)
            self._valkey = Valkey.choose()
        raise StackFailed(f"the private Valkey server did not start:\n{child.log_tail()}")

    def _await_api(self, child: Child) -> None:
        if not self._poll(lambda: self._read_address(child), READY_S, child):
            raise StackFailed(f"the API did not start:\n{child.last_words()}")
        with Client(self.url, timeout_s=5.0) as client:
            if not self._poll(lambda: _is_ready(client), READY_S, child):
                raise StackFailed(f"the API is not ready after {READY_S:.0f} s:\n{child.log_tail()}")

    def _read_address(self, child: Child) -> bool:
        """Read the API's address from its log into `url`; return False if it is not there yet."""
        with child.log.open("rb") as file:
            file.seek(child.log_begins)
            for line in file.read().splitlines():
                if line.startswith(b"{") and b'"url"' in line:
                    try:
                        self.url = own_url(str(json.loads(line)["url"]))
                    except (ValueError, KeyError):
                        continue
                    self._port = int(self.url.rsplit(":", 1)[1])
                    return True
        return False

    def _poll(self, ready: Callable[[], bool], deadline_s: float, child: Child) -> bool:
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline and not self._stopping.is_set():
            if ready():
                return True
            if not child.alive():
                return False
            self._stopping.wait(0.03)
        return False

    def _launch(self, part: Part) -> Child:
        log = self._logs / f"{part.name}.log"
        if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
            log.replace(log.with_suffix(".log.1"))
        cpus = () if part.name == TIMING_PART else shared_cpus()
        env = self._environment()
        if part.module:
            child = self._open_nursery().start(part.name, part.module, part.command, log=log, env=env, cpus=cpus)
        else:
            child = children.start(
                part.name, part.command, log=log, env=env, cwd=paths.checkout(), stdin=part.stdin, cpus=cpus
            )
        part.child = child
        if part not in self._parts:
            self._parts.append(part)
        return child

    def _restart_if_dead(self, part: Part) -> None:
        """Restart a dead part. Raises StackFailed if it died too often."""
        child = part.child
        if child is None or child.alive():
            return
        child.signal_group(signal.SIGKILL)
        if part.died_too_often():
            raise StackFailed(f"{part.name} keeps dying (exit {child.process.returncode}):\n{child.last_words()}")
        self._launch(part)

    def _environment(self) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("COV_")}
        env.setdefault("WARPWRIGHT_LOG_LEVEL", "INFO")
        env.setdefault("WARPWRIGHT_BUILT_FILES", str(self._folder.path / "built"))
        env.setdefault("WARPWRIGHT_DATABASE_URL", f"sqlite:///{self._folder.path / 'warpwright.db'}")
        env |= {
            "WARPWRIGHT_REDIS_URL": self._valkey.url,
            "WARPWRIGHT_DATA_DIR": str(self._folder.path),
            "WARPWRIGHT_HOST": self._host,
            "WARPWRIGHT_PORT": str(self._port),
            "PYTHONUNBUFFERED": "1",
        }
        if self._gpu is not None:
            env["WARPWRIGHT_GPU_DEVICE"] = self._gpu
        if self._host not in (*WILDCARDS, "127.0.0.1", "::1", "localhost"):  # its own clients call it by this name
            names = env.get("WARPWRIGHT_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
            env["WARPWRIGHT_ALLOWED_HOSTS"] = f"{names},{f'[{self._host}]' if ':' in self._host else self._host}"
        return env


def own_url(listening: str) -> str:
    """Return the address at which this machine reaches a service that listens there: loopback for a wildcard."""
    parts = urlsplit(listening)
    if parts.hostname not in WILDCARDS:
        return listening.rstrip("/")
    return f"http://{WILDCARDS[parts.hostname]}:{parts.port}"


def _is_ready(client: Client) -> bool:
    try:
        client.get_readiness()
    except WarpwrightError:
        return False
    return True
