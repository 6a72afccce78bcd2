"""Make a few calls of a Candidate below one of NVIDIA's tools (compute-sanitizer, Nsight Compute).

The job folder holds `plan.json`, the Candidate's file and `values.bin`. Every tensor is an allocation of its own, no
longer than its values, so that a tool that watches allocations knows where each ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from evaluator.child import warpwright_native
from evaluator.child.protocol.layout import TensorSpec
from evaluator.child.protocol.progress import Progress, run_reporting
from evaluator.child.session import Session


def main() -> None:
    """Follow the plan. Report each finished step, and an exception at the end."""
    run_reporting(_follow)


def _follow(progress: Progress) -> None:
    job = Path(os.environ.get("WARP_JOB", "/job"))
    plan = json.loads((job / "plan.json").read_text(encoding="utf-8"))
    session = Session()
    session.device = _OwnMemory(plan["device"], job / "values.bin")
    if plan["line_info"]:
        _with_lines()
    session.load({"path": "candidate.py", "name": "candidate", "needs": ["ModelNew"]}, [])
    for number, one in enumerate(plan["sets"], start=1):
        progress.report(at=one["label"])
        session.construct({**one["construct"], "class": "ModelNew"}, [])
        session.state(one["state"], [])
        for _ in range(plan["warm_up"]):
            _call(session, one)
        with _watched(plan["range"]):
            _call(session, one)
        progress.report(did=number)


def _call(session: Session, one: Mapping[str, Any]) -> None:
    plainly = {"slot": "tool", "mutates": [], "repeats": 1}
    nothing = dict.fromkeys(("lift", "poison", "settle", "in_place", "detach", "spoil"), False)
    session.run({**one["call"], **plainly, **nothing}, [])
    session.kept.clear()


@contextmanager
def _watched(asked: bool) -> Iterator[None]:
    """Mark the part for a profiler that was told to wait for it."""
    if not asked:
        yield
        return
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    runtime.cudaProfilerStart()
    yield
    torch.cuda.synchronize()
    runtime.cudaProfilerStop()


class _Opened:
    def __init__(self, calls: list[list[torch.Tensor]]) -> None:
        self.calls = calls


class _OwnMemory:
    """A device (`child.device`) with grants that name parts of a file; each of their tensors becomes one allocation."""

    def __init__(self, device: str, values: Path) -> None:
        self.torch_device = torch.device("cpu") if device == "cpu" else torch.device("cuda", 0)
        self._values = values

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> _Opened:
        """Read the tensors of a grant. "at" is a tensor's place in the file, None for random values."""
        del fds
        return _Opened([[self._tensor(one) for one in call] for call in grant["calls"]])

    def _tensor(self, one: Mapping[str, Any]) -> torch.Tensor:
        spec = TensorSpec.from_json(one["layout"])
        if one["at"] is None:
            count = spec.span_bytes // spec.torch_dtype.itemsize
            drawn = torch.randn(count, device=self.torch_device).to(spec.torch_dtype)
            return spec.view(drawn.view(torch.uint8))
        raw = torch.empty(spec.span_bytes, dtype=torch.uint8, device=self.torch_device)
        with self._values.open("rb") as file:
            file.seek(one["at"])
            data = bytearray(file.read(spec.span_bytes))
        return spec.view(raw.copy_(torch.frombuffer(data, dtype=torch.uint8)) if data else raw)

    def claim(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Return the layout alone: the judge reads nothing from here."""
        return TensorSpec.of(tensor).to_json()

    def poisoned(self, size: int) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def lasting_copies(self, tensors: Sequence[torch.Tensor]) -> dict[int, dict[str, Any]]:
        return {}

    def trim_cache(self, share: float) -> None:
        """Do nothing: there is no cache."""

    def finish(self) -> None:
        """Wait for the device."""
        if self.torch_device.type == "cuda":
            torch.cuda.synchronize()


def _with_lines() -> None:
    """Make NVRTC record the Candidate's line of each instruction. The code itself stays the same.

    Kept compilations lack that record, so none are used.
    """
    compiled = warpwright_native.nvrtc_compile

    def with_lines(text: str, name: str, options: list[str]) -> bytes:
        return compiled(text, name, [*options, "--generate-line-info"])

    warpwright_native.nvrtc_compile = with_lines  # type: ignore[assignment]
    warpwright_native._cache_folders = list
