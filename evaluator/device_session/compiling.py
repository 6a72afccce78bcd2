"""Compile Baselines beside other work: on cores that are not timed, and on a GPU only while nothing is timed.

A child compiles in its first call, which takes from seconds to minutes. The judge sends that call and goes on; it looks
for the reply when it takes the device, and when it needs the child. A child's limit counts only the time in which it
runs, so a mode that hangs costs its own limit and nothing else.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.devices.base import DeviceBackend, Grant
from evaluator.errors import ChildFault, EvaluatorError
from evaluator.sandbox.channel import milliseconds_until
from evaluator.sandbox.process import PendingRequest
from evaluator.subject import Arguments, Subject
from evaluator.types import DeviceKind

COMPILE_S = 180.0  # of a first call; a C++ compiler runs inside it
_PREPARE_S = 120.0  # of torch.compile itself, which imports the compiler
_MOST_AT_ONCE = 6
Key = TypeVar("Key", bound=Hashable)
_LOOK_S = 0.1  # at the others, while one is waited for


@dataclass(frozen=True, slots=True)
class CompileJob:
    """A reference to compile: its constructor's arguments, and a first call. `mode` is torch.compile's.

    Jobs of a lower `rank` begin first.
    """

    rank: int
    source: str
    mode: str
    init: Arguments
    first_call: Arguments
    train: bool


class _Compilation(Generic[Key]):
    """One child on its way through `compile` and its first call."""

    def __init__(self, key: Key, job: CompileJob, backend: DeviceBackend, starting: Future[Subject]) -> None:
        self.key = key
        self._job, self._backend, self._starting = job, backend, starting
        self._subject: Subject | None = None
        self._asked: PendingRequest | None = None
        self._grant: Grant | None = None
        self._paused_at: float | None = None
        self.fault: EvaluatorError | LayoutError | None = None
        self.done = False

    def advance(self) -> None:
        """Go as far as possible without waiting, unless paused. Raises nothing: a failure is kept in `fault`."""
        try:
            while not self.done and self._paused_at is None and self._is_ready():
                self._step()
        except (EvaluatorError, LayoutError) as fault:
            self._fail(fault)
        except torch.OutOfMemoryError as error:
            self._fail(EvaluatorError(f"the judge has too little memory for its inputs: {error}"[:500]))

    def _fail(self, fault: EvaluatorError | LayoutError) -> None:
        self.fault, self.done = fault, True
        self.close()

    def _is_ready(self) -> bool:
        if self._subject is None:
            return self._starting.done()
        return self._asked is None or self._subject.child.has_reply(self._asked)

    def _step(self) -> None:
        if self._subject is None:
            subject = self._subject = self._starting.result()
            subject.construct("Model", self._job.init, train=self._job.train, seed=11)
            self._asked = subject.child.send_request("compile", timeout_s=_PREPARE_S, mode=self._job.mode)
            return
        assert self._asked is not None
        asked, self._asked = self._asked, None
        self._subject.child.receive_reply(asked)
        if asked.op == "compile":
            self._asked = self._send_first_call(self._subject)
            return
        self._subject.drop(_SLOT)
        self._close_grant()
        self._backend.place(self._subject.child)
        self._job = replace(self._job, init=_NOTHING, first_call=_NOTHING)  # they may hold gigabytes
        self.done = True

    def _send_first_call(self, subject: Subject) -> PendingRequest:
        call = self._job.first_call
        self._grant = self._backend.grant_calls([call.tensors])
        fields: dict[str, Any] = {"tree": call.tree, "grant": self._grant.fields, "slot": _SLOT}
        return subject.child.send_request("run", timeout_s=COMPILE_S, fds=self._grant.fds, **_PLAIN_RUN, **fields)

    def await_change(self, limit_s: float) -> None:
        """Wait until `advance` may go further, or for `limit_s`."""
        if self._subject is None:
            wait([self._starting], limit_s)
        elif self._asked is not None:
            poll = select.poll()  # `select` takes no descriptor above 1,023
            for descriptor in self._subject.child.reply_fds:
                poll.register(descriptor, select.POLLIN)
            poll.poll(milliseconds_until(min(time.monotonic() + limit_s, self._asked.deadline)))

    def take(self) -> Subject:
        """Return the child, which compiled. Raise its fault."""
        if self.fault is not None:
            raise self.fault
        assert self._subject is not None
        return self._subject

    def pause(self) -> None:
        """Stop the child. One that is just starting is left at its start, and asked for nothing. Raises nothing."""
        if self.done or self._paused_at is not None:
            return
        if self._subject is None:
            with suppress(EvaluatorError):  # kept by `advance`
                self._starting.result()
            self._paused_at = time.monotonic()
            return
        try:
            self._subject.child.freeze()
        except ChildFault as fault:
            self._fail(fault)
        else:
            self._paused_at = time.monotonic()

    def resume(self) -> None:
        if self._paused_at is None:
            return
        paused_s, self._paused_at = time.monotonic() - self._paused_at, None
        if self._subject is not None and self._asked is not None:
            self._subject.child.thaw()
            self._asked = replace(self._asked, deadline=self._asked.deadline + paused_s)

    def close(self) -> None:
        """End the child."""
        if self._subject is not None:
            self._subject.close()
        elif not self._starting.cancel():
            with suppress(EvaluatorError):
                self._starting.result().close()
        self._close_grant()

    def _close_grant(self) -> None:
        grant, self._grant = self._grant, None
        if grant is not None:
            grant.close()


_NOTHING = Arguments(None, ())
_SLOT = "compiled"
_PLAIN_RUN: dict[str, Any] = {
    "lift": None, "mutates": [], "repeats": 1, "poison": False, "settle": False,
    "in_place": False, "detach": True, "spoil": False,
}  # fmt: skip


class Compiler(Generic[Key]):
    """Compiles Baselines beside the judge's other work, a few at once. For the judge's own thread.

    `start` starts a child with a reference loaded.
    """

    def __init__(self, backend: DeviceBackend, start: Callable[[str], Subject]) -> None:
        self._backend, self._start = backend, start
        self._waiting: dict[Key, CompileJob] = {}
        self._running: dict[Key, _Compilation[Key]] = {}
        self._starter = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="starts-compilers")
        self._paused = self._held = False

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting or key in self._running

    def begin(self, key: Key, job: CompileJob) -> None:
        """Compile a job once `advance` finds room for it."""
        if key not in self:
            self._waiting[key] = job

    def advance(self) -> None:
        """Look for replies, and start what there is room for."""
        for one in self._running.values():
            one.advance()
        while self._waiting and not (self._paused or self._held) and self._at_work() < self._most():
            self._begin_now(min(self._waiting, key=lambda key: self._waiting[key].rank))

    def hold(self) -> None:
        """Begin nothing more until `go_on`, or until somebody waits for a job."""
        self._held = True

    def go_on(self) -> None:
        if self._held:
            self._held = False
            self.advance()

    def _begin_now(self, key: Key) -> None:
        job = self._waiting.pop(key)
        self._running[key] = _Compilation(key, job, self._backend, self._starter.submit(self._start, job.source))

    def _at_work(self) -> int:
        return sum(not one.done for one in self._running.values())

    def _most(self) -> int:
        if self._backend.kind is DeviceKind.CPU:
            return 1
        return max(1, min(_MOST_AT_ONCE, (os.cpu_count() or 1) // 2))

    def is_done(self, key: Key) -> bool:
        """Return true if `take` would not wait."""
        return key in self._running and self._running[key].done

    def await_all(self, keys: Collection[Key], limit_s: float) -> None:
        """Wait until all of these are done, or for `limit_s`."""
        self.go_on()
        end = time.monotonic() + limit_s
        while True:
            self.advance()
            left_s = end - time.monotonic()
            if left_s <= 0 or not any(key in self and not self.is_done(key) for key in keys):
                return
            ahead = [one for one in self._running.values() if not one.done]
            ahead.sort(key=lambda one: one.key not in keys)
            if ahead:
                ahead[0].await_change(min(left_s, _LOOK_S))

    def take(self, key: Key) -> Subject:
        """Return the child that compiled, waiting for it. Raise its fault, which is forgotten then."""
        if key in self._waiting:
            self._begin_now(key)
        while not self._running[key].done:
            self._running[key].resume()
            self.await_all([key], COMPILE_S)
        return self._running.pop(key).take()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop every child meanwhile: while something is timed on what they use."""
        before, self._paused = self._paused, True
        for one in self._running.values():
            one.pause()
        try:
            yield
        finally:
            self._paused = before
            if not before:
                for one in self._running.values():
                    one.resume()

    def drop(self, unwanted: Callable[[Key], bool]) -> None:
        """End the jobs with such keys."""
        for key in [key for key in self._waiting if unwanted(key)]:
            del self._waiting[key]
        for key in [key for key in self._running if unwanted(key)]:
            self._running.pop(key).close()

    def close(self) -> None:
        self.drop(lambda _: True)
        self._starter.shutdown()
