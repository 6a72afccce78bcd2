"""`python -m workers KIND`: run a worker process for one kind of work, or for `all` kinds as children."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celery.platforms import SecurityWarning
from sqlalchemy.exc import OperationalError

from db.engine import check, make_engine
from db.errors import SchemaMismatch, WrongAddress
from evaluator.collector import paused_collector
from runtime.errors import SettingsError
from runtime.logs import configure_logging
from runtime.queues import BUILD, BUILD_CUDA, CONTROL, CPU, CUDA, PROPOSE
from runtime.settings import settings
from workers.errors import StartFailed

QUEUE_OF = {
    "control": CONTROL,
    "propose": PROPOSE,
    "build": BUILD,
    "cpu": CPU,
    "gpu": CUDA,
    "gpu-build": BUILD_CUDA,
}
SCHEMA_WAIT_S = 60.0
STOP_S = 20.0
DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a worker until it is stopped. Exit status 2: invalid settings; 1: the database is not ready."""
    options = _parser().parse_args(arguments)
    if options.device:
        os.environ["WARPWRIGHT_GPU_DEVICE"] = options.device
    try:
        configure_logging(settings().log_level, settings().log_format)
        if options.kind == "all":
            return run_all(("control", "propose", "build", *(("gpu", "gpu-build") if options.gpu else ()), "cpu"))
        return run_one(options.kind, builds=options.builds)
    except (SettingsError, WrongAddress) as error:
        print(error, file=sys.stderr)
        return 2
    except StartFailed as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers", description=__doc__)
    parser.add_argument(
        "kind",
        choices=[*QUEUE_OF, "all"],
        help="control: decides the next steps and sweeps; propose: asks Proposers; build, gpu-build: screen and "
        "compile for the CPU or a GPU while others are timed; cpu, gpu: admit, time, judge and confirm on that device; "
        "all: all kinds except those of a GPU",
    )
    parser.add_argument(
        "--device", metavar="cuda:N", help="the GPU of a gpu or gpu-build worker (WARPWRIGHT_GPU_DEVICE)"
    )
    parser.add_argument(
        "--builds", action="store_true", help="with cpu: build, too, where there is no core for another worker's judge"
    )
    parser.add_argument("--gpu", action="store_true", help="with all: add a gpu and a gpu-build worker")
    return parser


def run_one(kind: str, *, builds: bool = False) -> int:
    """Run a Celery worker in this process: threads for `propose`, one Job at a time for other kinds. With `builds` the
    one for a CPU also builds.

    Its judge starts first, beside everything else. Raises StartFailed.
    """
    queues = [QUEUE_OF[kind], *([BUILD] if builds and kind == "cpu" else [])]
    with paused_collector():
        from workers.app import app, context  # noqa: PLC0415  reads the settings when imported
    context().begin(*queues)
    try:
        await_schema(settings().database_url)
    except StartFailed:
        context().close()
        raise
    stop = threading.Event()
    sweeper = None
    if kind == "control":
        from workers.sweeper import sweep_until  # noqa: PLC0415  only the control worker sweeps

        sweeper = threading.Thread(target=sweep_until, args=(context(), stop), name="sweeper", daemon=True)
        sweeper.start()
    pool: dict[str, Any] = {"pool_cls": "solo"}
    if kind == "propose":
        pool = {"pool_cls": "threads", "concurrency": settings().propose_threads}
    # Celery warns of pickle when run as root, but all messages are JSON and hold only a queue's name.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    try:
        # Not `worker_main`: Celery's command line imports for a second what only a terminal needs.
        worker = app.Worker(
            queues=queues, hostname=f"{kind}-{os.getpid()}@{socket.gethostname()}", quiet=True, **pool,
            loglevel=settings().log_level, without_gossip=True, without_mingle=True, without_heartbeat=True,
        )  # fmt: skip
        worker.start()
        return int(worker.exitcode or 0)
    except SystemExit as end:  # Celery ends every worker this way, even without an error
        return int(end.code or 0)
    finally:
        stop.set()
        if sweeper is not None:
            sweeper.join(settings().sweep_interval_s)


def run_all(kinds: Sequence[str]) -> int:
    """Run each kind as a child; all end when one ends or a signal arrives."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    prefix = [sys.executable, "-S", "-E", str(DIE_WITH_PARENT), str(os.getpid()), sys.executable, "-m", "workers"]
    children = [subprocess.Popen([*prefix, kind], start_new_session=True) for kind in kinds]
    while not stop.wait(0.2) and all(child.poll() is None for child in children):
        pass
    for child in children:
        if child.poll() is None:
            child.terminate()
    deadline = time.monotonic() + STOP_S
    for child in children:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    return 0 if stop.is_set() else 1


def await_schema(url: str, wait_s: float = SCHEMA_WAIT_S) -> None:
    """Wait until the database answers and has our revision. Raises StartFailed."""
    deadline = time.monotonic() + wait_s
    while True:
        engine = make_engine(url)
        try:
            check(engine)
        except (OperationalError, SchemaMismatch) as error:
            if time.monotonic() >= deadline:
                raise StartFailed(f"the database is not ready: {error}") from error
            time.sleep(0.5)
        else:
            return
        finally:
            engine.dispose()


if __name__ == "__main__":
    sys.exit(main())
