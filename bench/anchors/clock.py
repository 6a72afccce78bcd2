"""Time calls on a cold cache: one CUDA graph over rotating copies of everything that a call reads.

The copies together are larger than the L2 cache, so each call reads from memory, and nothing has to be subtracted.
Contenders are replayed in turn, in another order every round. On a CPU calls are timed one by one (for tests).
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

ROTATION_BYTES = 256 << 20  # several times an H200's L2
MOST_SETS, WARM_ROUNDS = 64, 2
Replay = Callable[[], None]
Call = Callable[..., Any]


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


class Rotation:
    """Copies of a workload's inputs and of a model's parameters and buffers."""

    def __init__(self, model: torch.nn.Module, inputs: list[Any], device: str = "cuda") -> None:
        state = state_of(model)
        tensors = [*state.values(), *(i for i in inputs if isinstance(i, torch.Tensor))]
        size = max(1, sum(t.nbytes for t in tensors))
        least = 1 if size > 2 * ROTATION_BYTES else 2
        self.cuda = device == "cuda"
        self.count = max(least, min(MOST_SETS, -(-ROTATION_BYTES // size))) if self.cuda else 1
        self.sets = [
            (
                {name: t.data.clone() for name, t in state.items()},
                [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs],
            )
            for _ in range(self.count)
        ]
        self.pool = torch.cuda.graph_pool_handle() if self.cuda else None
        self.anchor: Any = None  # a graph that keeps the pool while no other has it
        if self.cuda:
            self.anchor = self.capture([lambda: self.sets[0]])
        self.flush = torch.empty(ROTATION_BYTES, dtype=torch.uint8, device=device) if self.cuda else None

    def swapped(self, model: torch.nn.Module, call: Call) -> list[Call]:
        """Return a call for each copy that puts its parameters into `model` first; for compiled forms of `model`."""
        own = state_of(model)

        def turn(state: Mapping[str, torch.Tensor], inputs: list[Any]) -> Any:
            for name, tensor in own.items():
                tensor.data = state[name]
            return call(*inputs)

        return [lambda one=one: turn(*one) for one in self.sets]

    def instances(self, make: Callable[[dict[str, torch.Tensor]], Call]) -> list[Call]:
        """Return a call for each copy, of a model of its own that `make` makes from the copy's parameters."""
        made = [(make(state), inputs) for state, inputs in self.sets]
        return [lambda call=call, inputs=inputs: call(*inputs) for call, inputs in made]

    def capture(self, calls: Sequence[Call]) -> Replay:
        """Return a replay of all calls, which keeps what they use."""
        if not self.cuda:
            return lambda: [call() for call in calls] and None
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for call in calls:  # a model may prepare its weights at first
                call()
            calls[0]()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            results = [call() for call in calls]  # all at once: each has memory of its own
        del results
        kept = tuple(calls)  # the graph has the addresses of their models' tensors, and does not own them

        def replay() -> None:
            assert kept
            graph.replay()

        return replay

    def time_us(self, replay: Replay) -> float:
        """Return the microseconds of one call of a replay."""
        if not self.cuda:
            began = time.perf_counter()
            replay()
            return (time.perf_counter() - began) * 1e6 / self.count
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")
        start.record()
        replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3 / self.count

    def look_us(self, replay: Replay, times: int = 3) -> float:
        """Return the least of a few measurements."""
        return min(self.time_us(replay) for _ in range(times))

    def called_us(self, call: Call) -> float:
        """Return the microseconds of one call as issued, after the cache was overwritten."""
        if self.flush is not None:
            self.flush.zero_()
        return self.time_us(call) * self.count

    def rounds(self, replays: Mapping[str, Replay], limit_s: float, most: int = 40) -> dict[str, list[float]]:
        """Return the samples of each contender, round by round; rounds end with the time that they are given."""
        samples: dict[str, list[float]] = {name: [] for name in replays}
        names, order = list(replays), random.Random(0)
        began = time.monotonic()
        for number in range(WARM_ROUNDS + most):
            order.shuffle(names)
            taken = {name: self.time_us(replays[name]) for name in names}
            if number >= WARM_ROUNDS:
                for name, value in taken.items():
                    samples[name].append(value)
            if number >= WARM_ROUNDS + 5 and time.monotonic() - began > limit_s:
                break
        return samples


def ratio(ours: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """Return the median of other / ours over the rounds that both took part in, with its 95 % interval.

    The interval lies between order statistics, so it assumes nothing about how the samples are distributed.
    """
    found = sorted(b / a for a, b in zip(ours, other, strict=False))
    count = len(found)
    reach = int(0.98 * count**0.5) + 1
    low, high = max(0, count // 2 - reach), min(count - 1, (count - 1) // 2 + reach)
    value = statistics.median(found)
    return {"value": round(value, 4), "low": round(found[low], 4), "high": round(found[high], 4), "rounds": count}
