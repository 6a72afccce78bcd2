"""Serve the GPU's own operations: prepare timed calls, run a round."""

from __future__ import annotations

import base64
import contextlib
import copy
import gc
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils._pytree import tree_map

from evaluator.child.gpu import chain
from evaluator.child.gpu.calls import Call, CudaCalls
from evaluator.child.profile_ops import launches, read_trace
from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import read_tree
from evaluator.child.results import Null
from evaluator.child.session import Session

if TYPE_CHECKING:
    from evaluator.child.gpu.device import CudaMapped  # needs a driver


class CudaRounds:
    """The timed calls of the session's model."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._calls: CudaCalls | None = None
        self._plain: CudaCalls | None = None
        self._call: Call | None = None

    def operations(self) -> dict[str, Operation]:
        return {
            "cuda_prepare": self.prepare,
            "cuda_round": self.run,
            "cuda_plain": self.run_plainly,
            "cuda_profiler": self.start_profiler,
            "cuda_release": self.release,
        }

    def prepare(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the inputs of all calls ("grant"; "tree" places them among the arguments), warm up, capture.

        Call k uses copy k of "instances" copies of the module, so that large weights are not found in the L2 again.
        With "graph" false nothing is captured. Return {"captured", "why_not", "instances" (fewer if the module cannot
        be copied), "outputs": what each call returned}; captured outputs stay in place. With "link" the chain's steps
        precede the calls and are captured with them; "step" is their kernels in base64, or "".
        """
        self._calls = self._plain = None
        session, tree = self._session, request["tree"]
        mapped = cast("CudaMapped", session._open(request, fds))
        models = _copies(session.call, request["instances"])

        def call(index: int) -> Any:
            tensors = mapped.calls[index]
            with torch.no_grad():
                made = models[index % len(models)](*read_tree(tree, tensors.__getitem__))
            # Separate outputs for every call, so that the null Candidate's snapshot costs as much as any other's.
            return tree_map(torch.empty_like, made) if isinstance(session.model, Null) else made

        link = mapped.link(request["link"])
        if request["step"]:
            chain.use_image(base64.b64decode(request["step"]))

        steps = None if link is None else chain.Steps(link, mapped.calls)
        self._call = call
        self._calls = CudaCalls(call, len(mapped.calls), graph=request["graph"], steps=steps)
        return {
            "captured": self._calls.captured,
            "why_not": self._calls.why_not,
            "instances": len(models),
            "outputs": self._said(),
        }

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Make all calls "replays" times. Return {"captured", "device_us"}, and for plain calls {"outputs"} as in
        `prepare`."""
        del fds
        assert self._calls is not None  # the judge prepares first
        device_us = self._calls.run(request["replays"])
        self._session._device().finish()
        reply = {"captured": self._calls.captured, "device_us": device_us}
        return reply if self._calls.captured else {**reply, "outputs": self._said()}

    def run_plainly(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Make all calls "replays" times without the chain, from a graph of their own where the timed calls are
        captured. Return {"alike"}: false where there is no such graph, or no memory for it. With "profile" add
        {"kernels_us"}: the device time of one call's kernels."""
        del fds
        assert self._calls is not None  # the judge prepares first
        assert self._call is not None
        if self._plain is None:
            try:
                self._plain = CudaCalls(self._call, self._calls.count, graph=self._calls.captured)
            except torch.OutOfMemoryError:
                return {"alike": False}
        if self._plain.captured is not self._calls.captured:
            return {"alike": False}
        self._plain.run(request["replays"])
        self._session._device().finish()
        more = {"kernels_us": self._kernels_us(self._call, self._calls.count)} if request["profile"] else {}
        return {"alike": True, **more}

    def start_profiler(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Load the profiler, which takes seconds the first time."""
        del request, fds
        with contextlib.suppress(RuntimeError, OSError), _profile():
            self._session._device().finish()
        return {}

    def _kernels_us(self, call: Call, count: int) -> float | None:
        """Return the time of the kernels of a call, on average over all calls; None where no profiler works."""
        try:
            with _profile() as profile:
                for index in range(count):
                    call(index)
                self._session._device().finish()
            seen = launches(read_trace(profile), count)
        except (RuntimeError, OSError, ValueError):
            return None
        return sum(one["time_us"] for one in seen) if seen else None

    def release(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Release the graphs, their outputs and the inputs."""
        del request, fds
        self._calls = self._plain = self._call = None
        gc.collect()
        torch.cuda.empty_cache()
        return {}

    def _said(self) -> list[Any]:
        assert self._calls is not None
        return [self._session._output(output) for output in self._calls.outputs]


def _profile() -> torch.profiler.profile:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])


def _copies(model: Any, count: int) -> list[Any]:
    """Return the model and copies of it, or the model alone if it cannot be copied (it may hold a handle)."""
    try:
        return [model, *(copy.deepcopy(model) for _ in range(count - 1))]
    except Exception:  # noqa: BLE001  a Candidate's own __deepcopy__ may raise anything
        return [model]
