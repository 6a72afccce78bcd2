"""Run the fork server inside the cage: import torch once, then fork a child per job into its own namespaces.

It runs our code only and holds no secret. It listens to the judge on one socket (SOCK_SEQPACKET). The first packet is
its configuration; each further one is a job with four descriptors (channel, status, output, payload). When the judge
ends, the socket closes and the server ends with every process of the cage.

Each job has a supervisor, the first process of the job's pid namespace. It reports on `status` how the job ended, and
takes the whole namespace with it. The job itself serves requests on `channel` (see `protocol.framing`).
"""

from __future__ import annotations

import array
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import random
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from evaluator.child import confine, landlock
from evaluator.child.protocol import framing, job_files

_PACKET_BYTES = 128 * 1024
_CHANNEL, _STATUS, _OUTPUT, _PAYLOAD = range(4)


def main(control_fd: int) -> None:
    """Serve the judge until its socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a handler would let a job interrupt its supervisor
    control = socket.socket(fileno=control_fd)
    config, fds = _packet(control)
    seccomp = _read_all(fds[0])
    if config["mode"] == "spawn":
        _single(control, config, seccomp, socket.socket(fileno=fds[1]))
    framing.close_all(fds)
    _fork_server(control, config, seccomp)


def _single(control: socket.socket, config: Mapping[str, Any], seccomp: bytes, status: socket.socket) -> NoReturn:
    """Serve one job in one cage: import first, then wait for the job and become it."""
    pid = os.fork()
    if pid:
        control.close()
        status.send(b'{"hello": true}')
        confine.drop_privileges(config["supervisor_uid"])
        confine.set_dumpable(False)
        _report(status, pid)
    status.close()
    try:
        confine.die_with_parent()
        confine.drop_privileges(config["uid"])
        _preload(config)
        control.send(b'{"ready": true}')
        job, fds = _packet(control)
        job_files.write(job["folder"], job["files"], fds[_PAYLOAD])
        control.close()
        _become_job(job, fds, seccomp)
    except EOFError:
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  it is reported to the judge, and this process ends
        with contextlib.suppress(OSError):
            control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)


def _fork_server(control: socket.socket, config: Mapping[str, Any], seccomp: bytes) -> None:
    nested = config["nested"]
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if nested else -1
    if nested and not _can_nest(own_pids):
        control.send(b'{"failed": "namespaces cannot be nested here"}')
        os._exit(1)
    _preload(config)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors; the judge watches them by pidfd
    gc.freeze()  # collecting first would look through all that was imported and find next to nothing
    control.send(b'{"ready": true}')
    while True:
        try:
            job, fds = _packet(control)
        except EOFError:
            os._exit(0)
        if nested:
            confine.unshare(confine.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            control.close()
            _supervise(job, fds, seccomp, config)
        if nested:
            confine.enter_namespace(own_pids, confine.CLONE_NEWPID)
        framing.close_all(fds)


def _can_nest(own_pids: int) -> bool:
    """Return true if a child can have namespaces of its own. It is tried before anything slow is imported."""
    try:
        confine.unshare(confine.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            try:
                confine.make_namespaces(1 << 20, {})
                os._exit(0)
            finally:
                os._exit(1)
        _, state = os.waitpid(pid, 0)
        confine.enter_namespace(own_pids, confine.CLONE_NEWPID)
    except OSError:
        return False
    return state == 0


def _preload(config: Mapping[str, Any]) -> None:
    gc.disable()  # what is imported stays: looking through it on the way takes a tenth of the time
    try:
        for name in config["preload"]:
            module = importlib.import_module(name)
            if name == "torch":
                module.set_num_threads(1)  # before any operation, since a thread pool would not survive the fork
    finally:
        gc.enable()


def _packet(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    fds = array.array("i")
    data, ancillary, _, _ = control.recvmsg(_PACKET_BYTES, socket.CMSG_SPACE(8 * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload)
    if not data:
        raise EOFError
    return json.loads(data), fds.tolist()


def _read_all(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0)


def _supervise(job: Mapping[str, Any], fds: list[int], seccomp: bytes, config: Mapping[str, Any]) -> NoReturn:
    """Run the first process of the job's pid namespace: prepare it, fork the job, report its end."""
    nested = config["nested"]
    status = socket.socket(fileno=fds[_STATUS])
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        if nested:
            confine.die_with_parent()
            confine.make_namespaces(job["limits"]["tmp_bytes"], config["links"])
        else:
            signal.signal(signal.SIGTERM, _end_descendants)
            confine.die_with_parent(signal.SIGTERM)
            confine.adopt_orphans()
        job_files.write(job["folder"], job["files"], fds[_PAYLOAD])
        if nested:
            confine.open_job_folder() if job["late"] else confine.seal_job_folder()
        status.send(b'{"hello": true}')
        pid = os.fork()
        if pid == 0:
            status.close()
            _become_job(job, fds, seccomp)
        os.closerange(0, status.fileno())
        os.closerange(status.fileno() + 1, 1 << 16)
        if nested:
            confine.drop_privileges(job["supervisor_uid"])
            confine.die_with_parent()  # changing user cleared it
        confine.set_dumpable(False)
        _report(status, pid)
    except BaseException as error:  # noqa: BLE001  it is reported to the judge, and this process ends
        with contextlib.suppress(OSError):
            status.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
    os._exit(1)


def _report(status: socket.socket, job: int) -> NoReturn:
    while True:
        pid, state = os.wait()
        if pid == job:
            break
    code = os.waitstatus_to_exitcode(state)
    report = {"signal": -code} if code < 0 else {"exit": code}
    with contextlib.suppress(OSError):
        status.send(json.dumps(report).encode())
    _end_descendants()


def _end_descendants(*_: object) -> NoReturn:
    """End with all descendants. The kernel ends a pid namespace; without one, adopted orphans are killed here."""
    tasks = Path("/proc/self/task")
    while os.getpid() != 1:
        for children in tasks.glob("*/children"):
            for pid in children.read_text().split():
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            break
    os._exit(0)


def _become_job(job: Mapping[str, Any], fds: list[int], seccomp: bytes) -> NoReturn:
    """Give up every right, then serve the judge. Nothing of a Candidate's has run yet."""
    try:
        channel = _arrange_descriptors(fds)
        os.setsid()
        random.seed()
        faulthandler.enable(file=2)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.environ.update(job["environment"])
        confine.set_limits(job["limits"])
        confine.drop_privileges(job["uid"])
        Path(os.environ["HOME"]).mkdir(exist_ok=True)
        os.chdir(os.environ["TMPDIR"])
        if job["readable"]:
            landlock.restrict([*job["readable"], f"/proc/{os.getpid()}"], job["writable"])
        confine.set_dumpable(True)  # changing user cleared it; the judge reads results from this process
        if seccomp:
            confine.filter_system_calls(seccomp)
        if job["operations"] not in sys.modules:
            sys.path.append(job["folder"])
        operations = importlib.import_module(job["operations"]).OPS
        framing.send_all(channel, framing.encode({"ready": True}, framing.MAX_REPLY_BYTES))
        framing.serve(channel, operations)
    except BaseException as error:  # noqa: BLE001  it must never return into the fork server's code
        with contextlib.suppress(OSError):
            os.write(2, f"job set-up: {type(error).__name__}: {error}\n".encode())
        os._exit(70)
    os._exit(0)


def _arrange_descriptors(fds: list[int]) -> socket.socket:
    """Make 0 read nothing, 1 and 2 the output, and 3 the channel; close all others."""
    null = os.open("/dev/null", os.O_RDONLY)
    high = [os.dup2(fd, 100 + index) for index, fd in enumerate((null, fds[_OUTPUT], fds[_OUTPUT], fds[_CHANNEL]))]
    for target, fd in enumerate(high):
        os.dup2(fd, target, inheritable=target < 3)
    os.closerange(4, 1 << 16)
    return socket.socket(fileno=3)


if __name__ == "__main__":
    main(int(sys.argv[1]))
