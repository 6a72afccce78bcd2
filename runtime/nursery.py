"""Start programs as forks of one process that has imported what they share: `python -m runtime.nursery MODULE ...`.

The programs of the embedded stack import the same packages, for seconds each. Here they are imported once, and a
program starts in milliseconds. A line of JSON on standard input asks for one (`Request`); a line on standard output
answers with its process id, and another one tells its exit status. The nursery ends with its standard input. The kernel
kills its programs with it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from evaluator.collector import paused_collector

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """A program: the module that is run as `python -m` would, what it gets, and the file that its output goes to.

    `ps -o comm` shows its name. `cpus` are the processors that it may use; empty means those of the nursery.
    """

    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: str
    cpus: Sequence[int]


def main(modules: Sequence[str]) -> None:
    """Import the modules, then start programs until standard input ends.

    A module that cannot be imported is left out: the program that needs it fails with the reason in its own log.
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # what an import prints is no answer
    with paused_collector():
        for module in modules:
            with suppress(Exception):
                importlib.import_module(module)
    gc.collect()
    gc.freeze()  # pages of objects stay shared
    request = _serve(answers)
    if request is not None:  # this is the program
        sys.argv[:] = [request.module, *request.arguments]
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)


def _serve(answers: int) -> Request | None:
    """Answer requests. Return the program's own in its process, and None once standard input has ended."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if woken in ready:
                with suppress(BlockingIOError):
                    os.read(woken, _CHUNK_BYTES)
                _tell_exits(answers)
            if 0 not in ready:
                continue
            data = os.read(0, _CHUNK_BYTES)
            if not data:
                return None
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                request = Request(**json.loads(line))
                if _fork(request, answers, (answers, woken, wake)):
                    return request


def _fork(request: Request, answers: int, ours: Sequence[int]) -> bool:
    """Fork a program. Return True in its own process, without the descriptors that are `ours`."""
    nursery = os.getpid()
    pid = os.fork()
    if pid != 0:
        _say(answers, pid=pid)
        return False
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd in ours:
        os.close(fd)
    _become(request, nursery)
    return True


def _tell_exits(answers: int) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(answers, ended=pid, status=os.waitstatus_to_exitcode(status))


def _say(answers: int, **told: int) -> None:
    os.write(answers, json.dumps(told).encode() + b"\n")


def _become(request: Request, nursery: int) -> None:
    """Give this fork the program's own process group, environment, output and processors."""
    os.setsid()
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        libc.prctl(_PR_SET_NAME, request.name.encode()[:15], 0, 0, 0)
        if os.getppid() != nursery:
            os._exit(1)
        if request.cpus:
            os.sched_setaffinity(0, request.cpus)
    os.environ.clear()
    os.environ.update(request.environment)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for fd, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(fd, target)
    os.close(nothing)
    os.close(log)
    random.seed()  # forks would draw the same


if __name__ == "__main__":
    main(sys.argv[1:])
