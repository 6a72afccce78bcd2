"""Serve the CPU's own operations: map inputs ahead, run a timed round.

The inputs of timed calls lie in one shared memory file. It is mapped, with every page present, while still empty. The
judge writes while this process is stopped, so no page fault falls into a call and nothing is visible early. With single
calls, the judge writes each call's inputs after the call before has returned. Judge and child wait for each other by
polling a page that both have mapped: neither sleeps, and caches stay as warm as in a round.
"""

from __future__ import annotations

import mmap
from typing import Any

import torch

from evaluator.child.cpu_device import map_shared, touch_heap
from evaluator.child.protocol import chain
from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import TensorSpec, read_tree
from evaluator.child.results import shadowed_name, tensor_leaves
from evaluator.child.session import Session

# int64 words of the shared page: the number of granted calls, the number of calls made, and the addresses of the
# tensors that the last call returned.
GRANTED, MADE, ADDRESSES = 0, 1, 2
PAGE_BYTES = 4096
MOST_TENSORS = PAGE_BYTES // 8 - ADDRESSES
# Of the heap, beside a round's outputs: so many outputs more, for what a call makes on its way, and some more.
_SPARE_OUTPUTS, _MOST_SPARE_BYTES, _SPARE_BYTES = 4, 256 << 20, 16 << 20
_MOST_HEAP_BYTES = 1 << 30
_address = torch.Tensor.data_ptr  # a tensor's own attribute of that name must not be called


class CpuRounds:
    """The timed calls of the session's model."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._raw: torch.Tensor | None = None
        self._tensors: list[list[torch.Tensor]] = []
        self._arguments: list[Any] = []
        self._link: chain.Link | None = None
        self._outputs: list[Any] = []
        self._bits: list[Any] = []  # by call: the inputs that the chain changes, as integers
        self._heap = 0  # bytes that were touched ahead

    def operations(self) -> dict[str, Operation]:
        return {
            "cpu_stage": self.stage,
            "cpu_arm": self.arm,
            "cpu_round": self.run,
            "cpu_singles": self.run_singly,
            "cpu_plain": self.run_plainly,
            "cpu_release": self.release,
        }

    def stage(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the file of "bytes" bytes that will hold the inputs of rounds."""
        self.release(request, fds)
        self._raw = map_shared(fds[0], int(request["bytes"]))
        return {}

    def arm(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Forget the last round, and make the arguments of the next one's calls. Their values come later."""
        raw = self._raw
        assert raw is not None  # the judge stages first
        self._grow_heap(int(request["count"]))
        self._outputs = []
        specs = [TensorSpec.from_json(layout) for layout in request["layouts"]]
        places = [raw[index * int(request["pitch"]) :] for index in range(int(request["count"]))]
        self._tensors = [[spec.with_own_storage(place) for spec in specs] for place in places]
        self._arguments = [read_tree(request["tree"], tensors.__getitem__) for tensors in self._tensors]
        self._link = None if request["link"] is None else chain.Link.from_json(request["link"], raw)
        self._bits = []
        if self._link is not None:
            self._bits = [chain.target_arrays(tensors, self._link) for tensors in self._tensors]
        return {}

    def _grow_heap(self, count: int) -> None:
        """Touch memory for the outputs of a round of `count` calls while those of the last round are still there. A
        freed output is hardly ever large enough for the next aligned one, so a heap grows for many rounds, which would
        cost a call several times its own time."""
        if not self._outputs:
            return
        a_call = sum(t.numel() * t.element_size() for t in tensor_leaves(self._outputs)) // len(self._outputs)
        wanted = count * a_call + min(_SPARE_OUTPUTS * a_call, _MOST_SPARE_BYTES) + _SPARE_BYTES
        wanted = min(wanted, _MOST_HEAP_BYTES)
        if wanted > self._heap:
            touch_heap(wanted)
            self._heap = wanted

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Make one call per input set, each after the chain's step. Outputs are kept until the next round is made."""
        model, link, outputs = self._session.call, self._link, self._outputs
        numbers = None if link is None else link.numbers()
        with torch.no_grad():
            for index, arguments in enumerate(self._arguments):
                if link is not None and index:
                    last = outputs[-1]
                    output = last if type(last) is torch.Tensor else tensor_leaves(last)[link.output]
                    chain.step_on_cpu(output, self._bits[index], link, numbers)
                outputs.append(model(*arguments))
        return {"outputs": _compact_claims(self._session, outputs)}

    def run_singly(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Make one call per input set, each once it is granted. Outputs are kept until the next round is made."""
        model, outputs = self._session.call, self._outputs
        words = memoryview(mmap.mmap(fds[0], PAGE_BYTES)).cast("q")
        with torch.no_grad():
            for turn, arguments in enumerate(self._arguments, 1):
                while words[GRANTED] < turn:
                    pass
                output = model(*arguments)
                outputs.append(output)
                tensors = [output] if type(output) is torch.Tensor else tensor_leaves(output)[:MOST_TENSORS]
                for place, tensor in enumerate(tensors, ADDRESSES):
                    words[place] = _address(tensor)
                words[MADE] = turn
        return {"outputs": _compact_claims(self._session, outputs)}

    def run_plainly(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Make the calls "passes" times over as a user's loop does: an output lives until the next one is there."""
        model, output = self._session.call, None
        with torch.no_grad():
            for _ in range(request["passes"]):
                for arguments in self._arguments:
                    output = model(*arguments)
        del output
        return {}

    def release(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Release the mapping and everything in it."""
        self._raw, self._link = None, None
        self._tensors, self._arguments, self._outputs, self._bits = [], [], [], []
        return {}


def _compact_claims(session: Session, outputs: list[Any]) -> list[Any]:
    """Return the claims of each call; for a tensor with the layout of the one before, only its address."""
    found: list[Any] = []
    known: tuple[Any, ...] = ()
    for value in outputs:
        plain = type(value) is torch.Tensor and not value.is_nested and not shadowed_name(value)
        layout = (value.shape, value.stride(), value.dtype) if plain else ()
        found.append(value.data_ptr() if layout and layout == known else session._output(value))
        known = layout
    return found
