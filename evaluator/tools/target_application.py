"""The program that a tool runs: a Candidate with its compiled files and inputs that the judge made for it.

The tool's cage cannot map the judge's memory as other children do: a tool watches allocations, and these must be the
Candidate's own, each of its tensor's size. So values are passed in a file.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from evaluator.child import warpwright_native
from evaluator.child.protocol.layout import LayoutError, TensorSpec, overwrite
from evaluator.devices import cuda_children
from evaluator.errors import ChildFault, Rejection
from evaluator.inputs.sizes import varied_sizes
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import match_names
from evaluator.subject import Arguments, Subject
from evaluator.tools import tool
from evaluator.types import Candidate, Device, DeviceKind, Problem, Workload

CANDIDATE_FILE = "candidate.py"
_VARIED = 3


@dataclass(slots=True)
class TargetApplication:
    """A Candidate and the calls (`sets`) to make: sizes, arguments and parameters. `built` has its compiled files."""

    problem: Problem
    candidate: Candidate
    kind: DeviceKind
    environment: Mapping[str, str]
    built: Mapping[str, bytes]
    values_bytes: int = 96 << 20  # of all inputs and parameters
    sets: list[dict[str, Any]] = field(default_factory=list)
    _values: bytearray = field(default_factory=bytearray)

    @classmethod
    def of(cls, problem: Problem, candidate: Candidate, device: Device, built: Mapping[str, bytes]) -> Self:
        """Return an application without calls. A child of the judge has run the Candidate already."""
        target = warpwright_native._cuda_target()
        environment = cuda_children.gpu_environment(device.uuid, target) if device.kind is DeviceKind.CUDA else {}
        return cls(problem, candidate, device.kind, environment, built)

    def add(self, label: str, oracle: Oracle, subject: Subject) -> None:
        """Add a call with inputs of `oracle`. Raises ChildFault, LayoutError, Rejection, TooLarge."""
        names = subject.construct("ModelNew", oracle.init, train=self.problem.train, seed=7)
        state = oracle.state_for(match_names(oracle.names, names))
        inputs = oracle.inputs()
        before = len(self._values)
        try:
            construct = {**self._arguments(oracle.init), "train": self.problem.train, "seed": 7, "beside": False}
            held = {"names": list(state), "grant": self._grant(list(state.values()))}
            one = {"label": label, "construct": construct, "state": held, "call": self._arguments(inputs)}
        except TooLarge:
            del self._values[before:]
            raise
        self.sets.append(one)

    def run(
        self,
        command: Sequence[str],
        *,
        limit_s: float,
        environment: Mapping[str, str],
        few: bool = False,
        warm_up: int = 0,
        marked: bool = False,
    ) -> tool.ToolRun:
        """Make the calls under a tool, each after `warm_up` others; with `few` those of the first sizes only.

        With `marked` the begin and the end of the call that counts are marked for a profiler.
        """
        plan = {
            "device": str(self.kind),
            "sets": self.sets[:1] if few else self.sets,
            "warm_up": warm_up,
            "range": marked,
            "line_info": self.kind is DeviceKind.CUDA,
        }
        files = {
            **self.built,
            CANDIDATE_FILE: self.candidate.source.encode("utf-8", "surrogatepass"),
            "plan.json": json.dumps(plan).encode(),
            "values.bin": bytes(self._values),
        }
        return tool.run(
            self.kind, command, application="tool_target", files=files, environment=self.environment, limit_s=limit_s,
            application_environment=environment,
        )  # fmt: skip

    def _arguments(self, arguments: Arguments) -> dict[str, Any]:
        return {"tree": arguments.tree, "grant": self._grant(arguments.tensors)}

    def _grant(self, tensors: Sequence[torch.Tensor]) -> dict[str, Any]:
        return {"calls": [[self._kept(tensor) for tensor in tensors]]}

    def _kept(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Return the place of a tensor's bytes in the file, or None for large floating-point ones: random values do."""
        overlapping = any(step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        tensor = tensor.detach().contiguous() if overlapping else tensor.detach()
        spec = TensorSpec.of(tensor)
        at = len(self._values)
        if at + spec.span_bytes > self.values_bytes:
            if not tensor.is_floating_point():
                raise TooLarge(f"its inputs have more than {self.values_bytes >> 20} MiB")
            return {"layout": spec.to_json(), "at": None}
        copy = torch.zeros(spec.span_bytes, dtype=torch.uint8)
        overwrite(spec.view(copy), tensor)
        self._values += ctypes.string_at(copy.data_ptr(), copy.numel()) if copy.numel() else b""
        return {"layout": spec.to_json(), "at": at}


class TooLarge(Exception):
    """Inputs that are not floating-point and too large for a file."""


def add_small_calls(
    application: TargetApplication,
    subject: Subject,
    reference: Subject,
    generator: torch.Generator,
    workloads: Sequence[Workload],
) -> str:
    """Add calls of the smallest shown Workload and of a few varied sizes; return why none was added, or "".

    The varied sizes are among those on which a Candidate is checked. Sizes that the reference refuses are skipped.
    """
    shown = [workload for workload in workloads if not workload.held_out]
    if not shown:
        return "every workload is held out"
    problem, why = application.problem, ""
    smallest = min(shown, key=lambda w: math.prod(v for v in w.sizes.values() if type(v) is int and v > 0))
    wanted = [(smallest.name, smallest.sizes)]
    wanted += [(sizes.label, sizes.sizes) for sizes in varied_sizes(problem, workloads)][:_VARIED]
    for label, sizes in wanted:
        try:
            application.add(label, Oracle(problem, reference, sizes, generator), subject)
        except (ChildFault, LayoutError, Rejection, TooLarge) as fault:
            why = why or f"no inputs on {label}: {fault}"
    return "" if application.sets else why[:500]
