"""Time calls on a GPU on a cold cache: one CUDA graph over rotating copies of everything that a call reads.

The copies together are larger than the L2 cache, so each call reads from memory, and nothing has to be subtracted.
Models that are compared are replayed in turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch

ROTATION_BYTES = 256 << 20  # several times an H200's L2
MOST_SETS, WARM_ROUNDS, ROUNDS = 64, 3, 25
Replay = Callable[[], None]


class Rotation:
    """Copies of a workload's inputs and of a model's parameters and buffers."""

    def __init__(self, model: torch.nn.Module, inputs: list[Any]) -> None:
        state = _state(model)
        tensors = [*state.values(), *(i for i in inputs if isinstance(i, torch.Tensor))]
        size = max(1, sum(t.nbytes for t in tensors))
        self.count = max(2, min(MOST_SETS, -(-ROTATION_BYTES // size)))
        self.sets = [
            (
                {name: t.data.clone() for name, t in state.items()},
                [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs],
            )
            for _ in range(self.count)
        ]

    def capture(self, model: torch.nn.Module, call: Callable[..., Any]) -> Replay:
        """Return a replay of one call for each copy. `call` is `model`, or its compiled form."""
        own = _state(model)

        def turn(state: Mapping[str, torch.Tensor], inputs: list[Any]) -> Any:
            for name, tensor in own.items():
                tensor.data = state[name]
            return call(*inputs)

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for one in (*self.sets[:2], self.sets[0]):
                turn(*one)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = [turn(*one) for one in self.sets]  # all at once: each has memory of its own
        del results
        return graph.replay

    def times_us(self, replays: Mapping[str, Replay]) -> dict[str, tuple[float, float]]:
        """Return the median and the least microseconds of a call of each, the models replayed in turn."""
        samples: dict[str, list[float]] = {name: [] for name in replays}
        for number in range(WARM_ROUNDS + ROUNDS):
            for name, replay in replays.items():
                start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")
                start.record()
                replay()
                end.record()
                end.synchronize()
                if number >= WARM_ROUNDS:
                    samples[name].append(start.elapsed_time(end) * 1e3 / self.count)
        return {name: (statistics.median(found), min(found)) for name, found in samples.items()}


def _state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
