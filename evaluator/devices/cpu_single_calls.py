"""Grant a child on the CPU one call after the other, and time each: the judge's side of `CpuRounds.run_singly`."""

from __future__ import annotations

import mmap
import os
import random
import threading
import time
from collections.abc import Sequence
from typing import Self

import torch

from evaluator.cage import freezer
from evaluator.cage.memory import read_process_pieces
from evaluator.child.cpu_ops import ADDRESSES, GRANTED, MADE, MOST_TENSORS, PAGE_BYTES
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.devices.base import EarlyRead
from evaluator.devices.cpu_memory import Staged, memory_file
from evaluator.sandbox.process import ChildProcess

_PATIENCE_NS = 20_000_000  # until the caller checks that the child lives
_WAITED_SHARE, _WAITED_US = 0.03, 2.0  # of a call, in which judge or child waited for its core: whichever is more
_PIECES = 4  # elements of an output that are read before the clock stops
_secret = random.SystemRandom()


class SingleCallGrants:
    """Grants the next of `calls` each time it is called; to be polled while the child works on its request.

    A call's time runs from before any byte of its inputs was there until some elements of an output, in secret places,
    were read. They are compared with that output's final contents, so a child that reports a call as done too early
    gains no time. Nothing else that the child writes into the page is trusted.
    """

    def __init__(
        self,
        child: ChildProcess,
        staged: Staged,
        calls: Sequence[Sequence[torch.Tensor]],
        layouts: Sequence[TensorSpec],
        patience_ns: int = _PATIENCE_NS,
    ) -> None:
        self._child, self._staged, self._calls, self._patience_ns = child, staged, calls, patience_ns
        self.fd = memory_file("turns", PAGE_BYTES)
        self._words = memoryview(mmap.mmap(self.fd, PAGE_BYTES)).cast("q")
        self._granted, self._start_ns = 0, 0
        self._waiting = (child.pid, child.pid), (os.getpid(), threading.get_native_id())
        able = [(leaf, spec) for leaf, spec in enumerate(layouts[:MOST_TENSORS]) if spec.span_bytes]
        self._places = [_places(*_secret.choice(able)) if able else (0, [], 1) for _ in calls]
        self.times_us: list[float] = []
        self.early: list[EarlyRead] = []
        self.disturbed: list[bool] = []
        self._waited_us = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def __call__(self) -> None:
        turn, words = len(self.times_us), self._words
        if turn == len(self._calls):
            return
        if self._granted == turn:
            self._waited_us = self._waiting_us()
        now_ns = time.perf_counter_ns()
        if self._granted == turn:
            self._start_ns = now_ns
            self._staged.write_call(turn, self._calls[turn])
            self._granted = words[GRANTED] = turn + 1
        while words[MADE] <= turn:
            if time.perf_counter_ns() > now_ns + self._patience_ns:
                return
        leaf, offsets, width = self._places[turn]
        address = words[ADDRESSES + leaf]
        try:
            data = read_process_pieces(self._child.pid, [address + offset for offset in offsets], width)
        except OSError as error:
            raise LayoutError(f"no memory at the address of an output: {error}") from error
        self.times_us.append((time.perf_counter_ns() - self._start_ns) / 1000)
        self.early.append(EarlyRead(leaf, offsets, data))
        waited_us = self._waiting_us() - self._waited_us
        self.disturbed.append(waited_us > max(_WAITED_US, _WAITED_SHARE * self.times_us[-1]))

    def _waiting_us(self) -> float:
        """Return how long this thread and the child's first one have waited for their cores so far. Both poll, so each
        that does not run has lost its core to somebody else."""
        return sum(freezer.run_and_queue_ns(pid, thread)[1] for pid, thread in self._waiting) / 1000


def _places(leaf: int, spec: TensorSpec) -> tuple[int, list[int], int]:
    """Choose some elements of an output: return its leaf, their offsets from its start, and the bytes of each."""
    width = spec.torch_dtype.itemsize
    picked = [[_secret.randrange(size) for size in spec.shape] for _ in range(_PIECES)]
    return leaf, [width * sum(a * b for a, b in zip(at, spec.stride, strict=True)) for at in picked], width
