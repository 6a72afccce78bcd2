"""Control one caged process for the judge: send requests, freeze it, read its memory, end it."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from evaluator.cage import freezer, monitor
from evaluator.cage.memory import read_process_memory, read_process_pieces
from evaluator.child.protocol import framing
from evaluator.errors import (
    CageError,
    ChildCrashed,
    ChildError,
    ChildFault,
    ChildProtocolError,
    ChildResumed,
    ChildTimeout,
    ChildUnstoppable,
    ShortOfMemory,
)
from evaluator.sandbox.channel import Channel, ChannelClosed, DeadlinePassed

_GRACE_S = 1.0  # for the report of an end to arrive, after its first signs
_LAST_WORDS_S = 0.5


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that was sent. `deadline` is a `time.monotonic`."""

    op: str
    ident: str
    timeout_s: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Place:
    """An address in a program, and the code there; b"" where it cannot be read."""

    address: int
    code: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """A stopped child: the place of each thread that is in no system call, by process and thread; whether it had
    replied; for how long it had run, and how often it had got a core."""

    places: Mapping[tuple[int, str], Place]
    replied: bool
    ran_us: float
    arrivals: int


def _code_at(pid: int, address: int, width: int) -> bytes:
    try:
        return read_process_pieces(pid, [address], width)
    except OSError:
        return b""


class ChildProcess:
    """One job in its cage, made by `ChildPool.start`; a context manager. Two threads must not use it at once.

    `pid` is the job's main process in the judge's pid namespace. `isolation` lists the missing protections. After a
    ChildTimeout, ChildCrashed or ChildProtocolError the child is dead, and further requests raise the same.
    """

    def __init__(
        self,
        *,
        name: str,
        pid: int,
        root: int,
        root_pidfd: int,
        channel: socket.socket,
        status: socket.socket,
        monitored: monitor.Monitored,
        watch: monitor.Monitor,
        isolation: tuple[str, ...],
        on_close: Callable[[ChildProcess], None],
    ) -> None:
        self.name = name
        self.pid = pid
        self.isolation = isolation
        self.may_lack_memory = False  # raise ShortOfMemory, not ChildError, when it reports that memory ran out
        self._root = root
        self._root_pidfd = root_pidfd
        self._channel = Channel(channel, status, lambda: freezer.total_queue_ns(root))
        self._monitored = monitored
        self._watch = watch
        self._on_close = on_close
        self._cleanups: list[Callable[[], None]] = []
        self._frozen: freezer.Frozen | None = None
        self._fault: ChildFault | None = None
        self._device_lost = False
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Return true while requests can be made."""
        return not self._closed and self._fault is None and not self._device_lost

    @property
    def runs(self) -> bool:
        """Return true if the child is alive and not frozen."""
        return self.alive and self._frozen is None

    def output(self) -> str:
        """Return the child's output so far (head and tail)."""
        return self._monitored.capture.text()

    def request(
        self,
        op: str,
        *,
        timeout_s: float,
        fds: Sequence[int] = (),
        meanwhile: Callable[[], None] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Run operation `op` in the child and return its result.

        `fds` are duplicated into the child. `meanwhile` is called repeatedly until the child replies; an exception in
        it ends the child. Raise ChildError when the operation raised (the child lives on), else ChildTimeout,
        ChildCrashed or ChildProtocolError (the child is dead by then). Time in the run queue, when others had its core,
        does not count against the child: it extends the limit, to four times `timeout_s` at most.
        """
        asked = self.send_request(op, timeout_s=timeout_s, fds=fds, **fields)
        with self._ending_at_faults(asked):
            while meanwhile is not None and not self._channel.is_readable() and time.monotonic() < asked.deadline:
                self._call_meanwhile(meanwhile)
        return self.receive_reply(asked)

    def send_request(self, op: str, *, timeout_s: float, fds: Sequence[int] = (), **fields: Any) -> PendingRequest:
        """Send a request: the first half of `request`. `receive_reply` has to follow."""
        if self._closed:
            raise CageError(f"{self.name}: closed")
        if self._fault is not None:
            raise self._fault
        self.check_frozen()
        self.thaw()
        asked = PendingRequest(op, secrets.token_hex(8), timeout_s, time.monotonic() + timeout_s)
        data = framing.encode({"id": asked.ident, "op": op, **fields}, framing.MAX_REQUEST_BYTES)
        with self._ending_at_faults(asked):
            self._channel.send(data, fds, asked.deadline)
        return asked

    def receive_reply(self, asked: PendingRequest) -> dict[str, Any]:
        """Receive the reply: the second half of `request`."""
        with self._ending_at_faults(asked):
            return self._result(self._channel.receive(asked.deadline, asked.timeout_s), asked.ident)

    def has_reply(self, asked: PendingRequest) -> bool:
        """Return true if `receive_reply` would not wait: the child began to reply, ended, or ran out of time."""
        return self._channel.is_readable() or time.monotonic() > asked.deadline

    @property
    def reply_fds(self) -> tuple[int, int]:
        """Return the descriptors that become readable when a pending child replies or ends."""
        return self._channel.fds

    def resume(self, asked: PendingRequest) -> PendingRequest:
        """Thaw a child that was frozen before it replied. Its time limit starts anew."""
        self.thaw()
        return replace(asked, deadline=time.monotonic() + asked.timeout_s)

    @contextlib.contextmanager
    def _ending_at_faults(self, asked: PendingRequest) -> Iterator[None]:
        try:
            yield
        except DeadlinePassed:
            self._abort()
            raise self._die(lambda output: ChildTimeout(asked.op, asked.timeout_s, output=output)) from None
        except ChannelClosed:
            raise self._die_crashed() from None
        except framing.WireError as error:
            reason = str(error)
            raise self._die(lambda output: ChildProtocolError(f"{asked.op}: {reason}", output=output)) from None

    def _call_meanwhile(self, meanwhile: Callable[[], None]) -> None:
        """Call `meanwhile`. An exception ends the child: its reply would be taken for the next one's."""
        try:
            meanwhile()
        except Exception as error:
            reason = f"while it ran: {error}"
            self._die(lambda output: ChildProtocolError(reason, output=output))
            raise

    def freeze(self) -> None:
        """Stop every thread of the child's namespace, and return once all are stopped.

        Raise ChildUnstoppable, and kill the child, if it does not stop. It stays frozen until it is thawed or gets a
        request.
        """
        if self._frozen is not None:
            return
        try:
            self._frozen = freezer.freeze(self._root)
            self._monitored.resting = True
        except freezer.CannotFreeze as error:
            reason = str(error)
            raise self._die(lambda output: ChildUnstoppable(reason, output=output)) from error

    def check_frozen(self) -> None:
        """Raise ChildResumed, and kill the child, if it has run while frozen."""
        if self._frozen is not None and self._frozen.has_run(self._root):
            raise self._die(lambda output: ChildResumed("it ran while it was stopped", output=output))

    def thaw(self) -> None:
        """Let a frozen child run again."""
        frozen, self._frozen = self._frozen, None
        self._monitored.resting = False
        if frozen is not None:
            freezer.thaw(frozen.pids)

    def sample(self, width: int) -> Sample:
        """Stop the child for a moment, and return where its threads are, each with `width` bytes of code."""
        self.freeze()
        try:
            found = freezer.program_counters(self._root)
            return Sample(
                places={who: Place(address, _code_at(who[0], address, width)) for who, address in found.items()},
                replied=self._channel.is_readable(),
                ran_us=self.total_ran_us(),
                arrivals=self.arrivals(),
            )
        finally:
            self.thaw()

    def arrivals(self) -> int:
        """Return how often the child's threads have got a core so far."""
        return freezer.total_arrivals(self._root)

    def run_and_queue_us(self) -> tuple[float, float]:
        """Return the run time and the run-queue time of the child's main thread so far."""
        ran_ns, waited_ns = freezer.run_and_queue_ns(self.pid, self.pid)
        return ran_ns / 1000, waited_ns / 1000

    def is_seen(self) -> bool:
        """Return whether the judge finds the job's process below its root, as it has to for stopping it."""
        return freezer.sees(self._root, self.pid)

    def total_ran_us(self) -> float:
        """Return the run time of all of the child's processes so far."""
        return freezer.total_ran_ns(self._root) / 1000

    def minor_faults(self) -> int:
        """Return the number of the child's page faults so far."""
        return freezer.minor_faults(self.pid)

    def read_memory(self, address: int, into: memoryview) -> None:
        """Copy memory of the child's main process into `into` (writable, contiguous).

        Raise OSError if it is missing.
        """
        read_process_memory(self.pid, address, into)

    def add_cleanup(self, action: Callable[[], None]) -> None:
        """Call `action` when the child is closed."""
        self._cleanups.append(action)

    def close(self) -> None:
        """Kill the whole namespace, wait for its end, and free everything. It may be called twice."""
        if self._closed:
            return
        self._closed = True
        self._kill_and_wait()
        self._on_close(self)
        for action in self._cleanups:
            action()
        self._channel.close()
        os.close(self._root_pidfd)

    def _result(self, reply: dict[str, Any], ident: str) -> dict[str, Any]:
        if reply.get("id") != ident:
            raise framing.WireError("the reply belongs to another request")
        error, result = reply.get("error"), reply.get("ok")
        if isinstance(error, dict):
            kind, message, trace = (str(error.get(key, ""))[:8000] for key in ("kind", "message", "trace"))
            found = ChildError(kind, message, trace, output=self.output())
            self._device_lost = self._device_lost or found.loses_device
            if found.oom and self.may_lack_memory:
                raise ShortOfMemory(str(found)) from found
            raise found
        if not isinstance(result, dict):
            raise framing.WireError("a reply without a result")
        return result

    def _abort(self) -> None:
        """Abort a child that is out of time: faulthandler then prints its current position."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGABRT)
        self._ends_within(_LAST_WORDS_S)

    def _ends_within(self, seconds: float) -> bool:
        """Return true if the job has ended, or does so within `seconds`."""
        ends = select.poll()
        ends.register(self._channel.status_fd, select.POLLIN)
        ends.register(self._root_pidfd, select.POLLIN)
        return bool(ends.poll(int(seconds * 1000)))

    def _die_crashed(self) -> ChildFault:
        """Return the fault that describes the child's end, as its supervisor reports it.

        End a child that only closed its channel.
        """
        if not self._ends_within(_GRACE_S):
            return self._die(lambda output: ChildProtocolError("the child closed its channel", output=output))
        report = self._channel.end_report()
        over = self._monitored.over
        if not over and self._monitored.killed_for_memory is not None and self._monitored.killed_for_memory():
            over = "memory"
        return self._die(
            lambda output: ChildCrashed(
                exit_code=report.get("exit"), signal=report.get("signal"), over=over, output=output
            )
        )

    def _die(self, make: Callable[[str], ChildFault]) -> ChildFault:
        self._kill_and_wait()
        self._fault = make(self.output())
        return self._fault

    def _kill_and_wait(self) -> None:
        monitor.kill(self._root_pidfd, self._monitored.kill_signal)
        gone = select.poll()
        gone.register(self._root_pidfd, select.POLLIN)
        if not gone.poll(10_000):
            raise CageError(f"{self.name}: process {self._root} does not die")
        self._watch.remove(self._monitored)  # reads the rest of what was printed
