"""Start caged children: from a preloaded fork server, or one cage each with a standby cage ready.

with ChildPool(DeviceKind.CPU, cpus=frozenset({1})) as pool, pool.start(name="candidate") as child:
    child.request("ping", timeout_s=1.0)
"""

from __future__ import annotations

import os
import platform
import random
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import TracebackType
from typing import Self

from evaluator.cage import cgroup, freezer, monitor, seccomp
from evaluator.cage.bare import CAGED, BareFolder
from evaluator.cage.host import CageHost, memory_file
from evaluator.cage.level import Level, levels
from evaluator.cage.policy import MINIMUM_VARIABLE, CagePolicy, Limits, Minimum, StartMode
from evaluator.cage.start import StandbyCage, await_child, status_pair
from evaluator.errors import CageError
from evaluator.sandbox.process import ChildProcess
from evaluator.schema import to_json
from evaluator.types import DeviceKind

_MAX_FILES_BYTES = 128 << 20
_OUR_PROCESSES = 8  # of each child: its supervisor and that one's helpers


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    files: Mapping[str, bytes]
    limits: Limits
    operations: str
    late: bool = False  # files are sent after the start


class ChildPool:
    """Start children for one device kind, with the strongest isolation that works on this machine.

    `cpus` pins the children, and they cannot widen it. `isolation` lists the protections that are missing; () if none
    is. The pool may be used from several threads. Close it, or use it as a context manager: every child ends with it.
    """

    def __init__(
        self, kind: DeviceKind, *, cpus: frozenset[int] | None = None, policy: CagePolicy | None = None
    ) -> None:
        self._kind = kind
        self._cpus = cpus
        self._policy = policy or CagePolicy()
        self._lock = threading.Lock()
        self._children: set[ChildProcess] = set()
        self._ordinal = random.SystemRandom().randrange(1 << 20)
        self._monitor = monitor.Monitor()
        self._host: CageHost | None = None
        self._standby: StandbyCage | None = None
        self._closed = False
        try:
            self._level = self._first_level_that_works()
        except BaseException:
            self._monitor.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def level(self) -> str:
        """Return the name of the isolation level in use: nested, nested-user, single, single-user or bare."""
        return self._level.name

    @property
    def minimum(self) -> Minimum:
        """Return the requested minimum isolation."""
        return self._policy.minimum

    def monitor_paused(self) -> AbstractContextManager[None]:
        """Do not watch children's memory while entered, so that our own threads do not disturb a timed round."""
        return self._monitor.paused()

    def start(
        self,
        *,
        name: str,
        files: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
        operations: str = "evaluator.child.ops",
    ) -> ChildProcess:
        """Start a child that has run nothing yet. `files` (relative path to content) appear read-only in /job.

        `operations` names the module with the OPS that the child serves; if it is not preloaded, it is also looked for
        in /job. Raise CageError when this machine fails, never because of the content of the files.
        """
        checked = check_files(files or {})
        return self._start(_Job(name, checked, limits or Limits.for_device(self._kind), operations))

    def start_without_files(self, *, name: str) -> ChildProcess:
        """Start a child that gets its files later, by operation "files", in a folder that stays writable for it.

        Raise CageError, also if children are not forked into namespaces of their own.
        """
        if not self._level.nested:
            raise CageError("this machine cannot start children before their files are known")
        return self._start(_Job(name, {}, Limits.for_device(self._kind), "evaluator.child.ops", late=True))

    def _start(self, job: _Job) -> ChildProcess:
        with self._lock:
            if self._closed:
                raise CageError("the pool is closed")
            child = self._fork(job) if self._level.mode is StartMode.FORK else self._spawn(job)
            self._children.add(child)
        if not child.is_seen():
            child.close()
            raise CageError(
                "the judge cannot see its children's processes, so it could not stop them: mount /proc without hidepid,"
                " and use a kernel with CONFIG_PROC_CHILDREN"
            )
        return child

    def close(self) -> None:
        """End every child and every cage. It may be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            children = list(self._children)
        for child in children:
            child.close()
        if self._host is not None:
            self._host.close()
        if self._standby is not None:
            self._standby.close()
        self._monitor.close()

    def _first_level_that_works(self) -> Level:
        failures = []
        for level in levels(self._policy.start, self._kind):
            lacking = _below(self._policy.minimum, level)
            if lacking:
                failures.append(f"{level.name}: {lacking}")
                continue
            try:
                if level.mode is StartMode.FORK:
                    self._host = self._new_host(level)
                else:
                    self._standby = self._ready_standby(level)
            except CageError as error:
                failures.append(f"{level.name}: {error}")
            else:
                # The reason helps a reader of "namespaces are missing".
                why = () if level.caged else tuple(failures)
                self.isolation = level.isolation + why + _unfiltered() + _unmeasured()
                return level
        asked = self._policy.minimum
        scope = "on this machine" if asked is Minimum.ANY else f"with the requested isolation ({asked})"
        raise CageError(f"no cage can be built {scope}: " + "; ".join(failures))

    def _new_host(self, level: Level) -> CageHost:
        host = CageHost(self._kind, level, self._policy, cpus=self._cpus, watch=self._monitor)
        try:
            host.wait_ready(self._policy.start_timeout_s)
        except CageError:
            host.close()
            raise
        return host

    def _ready_standby(self, level: Level) -> StandbyCage:
        standby = self._new_standby(level)
        try:
            standby.host.wait_ready(self._policy.start_timeout_s)
        except CageError:
            standby.close()
            raise
        return standby

    def _new_standby(self, level: Level) -> StandbyCage:
        self._ordinal += 1
        return StandbyCage(self._kind, level, self._policy, self._cpus, self._monitor, level.job_uid(self._ordinal))

    def _fork(self, job: _Job) -> ChildProcess:
        assert self._host is not None  # set by every FORK level
        if not self._host.alive:
            self._host.close()
            self._host = self._new_host(self._level)
        self._ordinal += 1
        status, inside = status_pair()
        with inside:
            uid = self._level.job_uid(self._ordinal)
            if self._level.caged:
                return self._launch(self._host, job, uid=uid, status=status, inside=inside)
            return self._launch_bare(self._host, job, uid, status, inside)

    def _spawn(self, job: _Job) -> ChildProcess:
        standby, self._standby = self._standby or self._new_standby(self._level), None
        try:
            standby.host.wait_ready(self._policy.start_timeout_s)
            child = self._launch(standby.host, job, uid=None, status=standby.status, inside=None)
        except BaseException:
            standby.close()
            raise
        child.add_cleanup(standby.close)
        if self._policy.keep_standby:
            self._standby = self._new_standby(self._level)
        return child

    def _launch_bare(
        self, host: CageHost, job: _Job, uid: int | None, status: socket.socket, inside: socket.socket
    ) -> ChildProcess:
        folder = BareFolder(self._kind, uid)
        try:
            child = self._launch(host, job, uid=uid, status=status, inside=inside, bare=folder)
        except BaseException:
            folder.remove()
            raise
        child.add_cleanup(folder.remove)
        return child

    def _launch(
        self,
        host: CageHost,
        job: _Job,
        *,
        uid: int | None,
        status: socket.socket,
        inside: socket.socket | None,
        bare: BareFolder | None = None,
    ) -> ChildProcess:
        channel, far = status_pair(socket.SOCK_STREAM)
        output_read, output_write = os.pipe2(os.O_CLOEXEC)
        sizes, payload = pack_files(job.files)
        message = {
            "files": sizes,
            "limits": to_json(job.limits),
            "uid": uid,
            "supervisor_uid": host.level.supervisor_uid,
            "operations": job.operations,
            "late": job.late,
            **(bare.message() if bare else CAGED),
        }
        monitored = monitor.Monitored(output_read, monitor.Capture(self._policy.output_bytes))
        try:
            host.send(message, [far.fileno(), (inside or far).fileno(), output_write, payload])
        finally:
            far.close()
            if inside is not None:
                inside.close()
            os.close(output_write)
            os.close(payload)
            self._monitor.add(monitored)
        try:
            pid, root, root_pidfd = await_child(channel, status, single=host.level.mode is StartMode.SPAWN)
        except BaseException:
            channel.close()
            status.close()
            self._monitor.remove(monitored)
            raise
        if bare:
            monitored.kill_signal = signal.SIGTERM  # without a namespace its supervisor has to end its processes
        monitored.watch(root, root_pidfd, job.limits.resident_bytes, job.limits.processes)
        group = _grouped(job.limits, root, pid)
        if group is not None:
            monitored.killed_for_memory = group.killed_for_memory
        child = ChildProcess(
            name=job.name,
            pid=pid,
            root=root,
            root_pidfd=root_pidfd,
            channel=channel,
            status=status,
            monitored=monitored,
            watch=self._monitor,
            isolation=self.isolation,
            on_close=self._forget,
        )
        if group is not None:
            child.add_cleanup(group.remove)
        return child

    def _forget(self, child: ChildProcess) -> None:
        self._children.discard(child)


def _grouped(limits: Limits, root: int, pid: int) -> cgroup.Group | None:
    """Return a control group for a child that has run nothing yet, with room for its temporary folders as well."""
    memory = None if limits.resident_bytes is None else limits.resident_bytes + 2 * limits.tmp_bytes
    group = cgroup.make_group(memory, limits.processes + _OUR_PROCESSES)
    if group is None:
        return None
    try:
        group.add(root, pid)
    except OSError:
        group.remove()
        return None
    return group


def _below(minimum: Minimum, level: Level) -> str:
    """Return what a level lacks of the requested minimum, "" if nothing."""
    if minimum is not Minimum.ANY and not level.caged:
        return (
            f"there are no namespaces, but {MINIMUM_VARIABLE}={minimum} requires them: install bubblewrap (see doctor)"
        )
    lacking = (*level.isolation, *_unfiltered(), *_unmeasured()) if minimum is Minimum.WHOLE else ()
    return f"{MINIMUM_VARIABLE}=whole, but {lacking[0]}" if lacking else ""


def _unfiltered() -> tuple[str, ...]:
    if seccomp.program() is not None:
        return ()
    return (f"system calls: there is no filter for {platform.machine()}; sockets and kernel facilities are open",)


def _unmeasured() -> tuple[str, ...]:
    if freezer.tells_run_times():
        return ()
    return (
        "run times: this kernel does not tell how long a process ran; one that continues while stopped is not found",
    )


def pack_files(files: Mapping[str, bytes]) -> tuple[list[tuple[str, int]], int]:
    """Pack files as `protocol.job_files` unpacks them.

    Return paths with sizes, and a descriptor of all contents. The caller closes the descriptor.
    """
    return [(path, len(data)) for path, data in files.items()], memory_file(b"".join(files.values()))


def check_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the same files. Raise ValueError for a name that is no relative path, or for too many bytes."""
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise ValueError(f"{name!r} is not a relative path")
    if sum(map(len, files.values())) > _MAX_FILES_BYTES:
        raise ValueError(f"a job's files may have at most {_MAX_FILES_BYTES} bytes in total")
    return dict(files)
