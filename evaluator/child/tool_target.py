"""The program that runs beneath one of NVIDIA's tools (compute-sanitizer, Nsight Compute): a few calls of a Candidate.

Its job folder holds `plan.json`, the Candidate's file and `values.bin`. Every tensor is an allocation of its own here,
as long as its values and no longer, so that a tool which watches allocations sees where each ends.
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
    """Do what the plan says; each step that is done is written down, and what is raised at last."""
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
    """The part that a profiler looks at, where it was told to wait for that."""
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
    """A device (`child.device`) whose grants name parts of a file: each tensor of theirs becomes one allocation."""

    def __init__(self, device: str, values: Path) -> None:
        self.torch_device = torch.device("cpu") if device == "cpu" else torch.device("cuda", 0)
        self._values = values

    def open(self, grant: Mapping[str, Any], fds: list[int]) -> _Opened:
        """Read what a grant names; "at" is where in the file a tensor's bytes are, None for one of random values."""
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
        """Nobody reads from here: what there is is enough."""
        return TensorSpec.of(tensor).to_json()

    def poisoned(self, size: int) -> AbstractContextManager[None]:
        """Memory is left as it is."""
        return nullcontext()

    def lasting_copies(self, tensors: Sequence[torch.Tensor]) -> dict[int, dict[str, Any]]:
        return {}

    def trim_cache(self, share: float) -> None:
        """Nothing is kept."""

    def finish(self) -> None:
        """Wait for the device."""
        if self.torch_device.type == "cuda":
            torch.cuda.synchronize()


def _with_lines() -> None:
    """Have NVRTC note which line of the Candidate each instruction comes from; the code itself stays as it is. What was
    kept of an earlier compilation does not say that, so nothing kept is used."""
    compiled = warpwright_native._nvrtc_compile

    def with_lines(text: str, name: str, options: list[str]) -> bytes:
        return compiled(text, name, [*options, "--generate-line-info"])

    warpwright_native._nvrtc_compile = with_lines  # type: ignore[assignment]
    warpwright_native._cache_folders = list
