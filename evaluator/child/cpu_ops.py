"""What a caged child can be asked to do on a CPU besides what every device offers: map inputs ahead, run a round.

The inputs of timed calls lie in one shared memory file. It is mapped, and every page of it is present, before anything
is in it; the judge writes while this process is stopped, so a page fault falls into no call and nothing is seen early.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from evaluator.child import chain
from evaluator.child.cpu_device import map_shared
from evaluator.child.session import Session, tensor_leaves
from evaluator.child.spec import TensorSpec, read_tree
from evaluator.child.wire import Operation


class CpuRounds:
    """The timed calls of the session's model."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._raw: torch.Tensor | None = None

    def operations(self) -> dict[str, Operation]:
        return {"cpu_stage": self.stage, "cpu_round": self.run, "cpu_release": self.release}

    def stage(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the file of "bytes" bytes that rounds will find their inputs in."""
        self._raw = None
        self._raw = map_shared(fds[0], int(request["bytes"]))
        return {}

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One call per input set, each after the chain's step; outputs are kept under "slot" until it is dropped."""
        raw = self._raw
        assert raw is not None  # the judge stages first
        specs = [TensorSpec.from_json(layout) for layout in request["layouts"]]
        pitch, tree, model = int(request["pitch"]), request["tree"], self._session.call
        link = _link(request["link"], raw)
        outputs: list[Any] = []
        with torch.no_grad():
            for index in range(int(request["count"])):
                place = raw[index * pitch :]
                tensors = [spec.view(place) for spec in specs]
                if link is not None and outputs:
                    chain.step(tensor_leaves(outputs[-1]), tensors, link)
                outputs.append(model(*read_tree(tree, tensors.__getitem__)))
        self._session.kept[request["slot"]] = outputs
        return {"outputs": [self._session._output(value) for value in outputs]}

    def release(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Give the mapping up."""
        self._raw = None
        return {}


def _link(data: Mapping[str, Any] | None, raw: torch.Tensor) -> chain.Link | None:
    return None if data is None else chain.Link.from_json(data, raw)
