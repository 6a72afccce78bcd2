"""Make the timed calls of one CUDA child: K calls over K input sets, captured as one CUDA graph or issued one by one.

A graph is replayed R times. Chained calls get other inputs in each replay (`chain.Steps`), so a kernel that marks
device memory and skips its work in later replays is caught by its outputs. Without a chain it is caught by the first
replay, which takes longer. A graph cannot hide work outside the captured stream (it is not in the graph, so new inputs
are not computed) or work in Python (it does not run again).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from evaluator.child.gpu.chain import Steps
from evaluator.child.results import tensor_leaves

_WARM_UP_CALLS = 3  # the first compiles and tunes, the second may still allocate, the third is like the captured one
_TEXT_LIMIT = 500

Call = Callable[[int], Any]


class CudaCalls:
    """Timed calls: `call(k)` makes call k of `count`. After construction they are warm and, if `graph` and possible,
    captured.

    `captured` tells the outcome, `why_not` the reason if not. `outputs` holds those of each call, alive and in place.
    """

    def __init__(self, call: Call, count: int, *, graph: bool = True, steps: Steps | None = None) -> None:
        self._call, self.count, self._steps = call, count, steps
        self._graph: torch.cuda.CUDAGraph | None = None
        self._start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.why_not: str | None = None
        self.outputs: list[Any] = []
        self._warm_up()
        if graph:
            try:
                self._capture()
            except Exception as error:  # noqa: BLE001  capture may raise anything; then calls are issued one by one
                self.why_not = f"{type(error).__name__}: {error}"[:_TEXT_LIMIT]
        if self._graph is None:
            self.run(1)

    @property
    def captured(self) -> bool:
        return self._graph is not None

    def _warm_up(self) -> None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for index in [*([0] * _WARM_UP_CALLS), *range(1, self.count)]:
                last = self._call(index)
            if self._steps is not None:  # their kernels cannot be loaded while a graph is captured
                self._steps.before(0, [])
                self._steps.before(self.count - 1, tensor_leaves(last))
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The CUDA Graph is empty")  # the null Candidate's is
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._call_all()
        graph.replay()
        torch.cuda.synchronize()
        self._graph = graph

    def _call_all(self) -> None:
        outputs: list[Any] = []
        for index in range(self.count):
            if self._steps is not None:
                self._steps.before(index, tensor_leaves(outputs[-1]) if outputs else [])
            outputs.append(self._call(index))
        self.outputs = outputs

    def run(self, replays: int) -> float:
        """Make all calls `replays` times, and wait for the device. Return device microseconds, from events."""
        if self._steps is not None:
            self._steps.begin()
        self._start.record()
        for _ in range(replays):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._call_all()
        self._end.record()
        torch.cuda.synchronize()
        return float(self._start.elapsed_time(self._end)) * 1e3
