"""Tracing in a cage: hostile or broken references only raise TraceError."""

# ruff: noqa: E501  formulas

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from evaluator.cage.policy import CagePolicy
from evaluator.problem import read_problem
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
from synthesis import __main__ as command
from synthesis.__main__ import main
from synthesis.errors import TraceError, Unsupported
from synthesis.graph.aten import read_reply
from synthesis.graph.capture import capture
from synthesis.strategies import propose
from tests.synthesis.checking import ROOT, problem

pytestmark = pytest.mark.compiles  # interpreters with torch


@pytest.fixture(scope="module")
def pool() -> Iterator[ChildPool]:
    """Preload what tracing imports, which takes a child longer than tracing."""
    policy = CagePolicy(preload=("torch", "torch._dynamo"))
    with ChildPool(DeviceKind.CPU, policy=policy) as started:
        yield started


def test_an_example_is_traced_in_a_cage(pool: ChildPool) -> None:
    path = ROOT / "examples" / "problems" / "rmsnorm_residual.py"
    found = read_problem(path.read_bytes(), path.stem)
    graphs = capture(found, DeviceKind.CPU, pool)
    assert set(graphs) == {"cpu-128x2048", "cpu-300x1024"}
    assert "odd" not in graphs, "held-out workloads are not shown"
    draft = propose(graphs, DeviceKind.CPU, number=0)
    assert draft is not None
    assert "residual" in draft.source


@pytest.mark.parametrize(
    "forward",
    [
        "raise ValueError('no')",
        "open('/etc/passwd', 'w')",
        "import os\nos._exit(3)",
        "return a0.item()",
        "return 'text'",
    ],
)
def test_a_broken_reference_is_a_trace_error(forward: str, pool: ChildPool) -> None:
    found = read_problem(problem(forward, "torch.randn(rows, n)"), "broken")
    with pytest.raises(TraceError):
        capture(found, DeviceKind.CPU, pool)


@pytest.mark.parametrize(
    "reply",
    [
        "", "[]", '{"graphs": 3}', '{"error": "no"}', '{"graphs": [{"nodes": []}]}',
        '{"graphs": [{"workload": "a", "sizes": {}, "arguments": [{"name": "x): import os", "tensor": true}], "nodes": [], '
        '"outputs": [], "structure": "tuple", "keys": []}]}',
    ],
)  # fmt: skip
def test_a_reply_that_is_no_graph_is_refused(reply: str) -> None:
    with pytest.raises(TraceError):
        read_reply(reply, "")


def test_nothing_to_fuse_is_said(pool: ChildPool) -> None:
    found = read_problem(problem("return torch.linalg.svd(a0)[1].to(torch.float64)", "torch.randn(rows, n)"), "svd")
    with pytest.raises(Unsupported):
        propose(capture(found, DeviceKind.CPU, pool), DeviceKind.CPU, number=0)


def test_the_command_prints_a_candidate(
    pool: ChildPool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(ROOT / "examples" / "problems" / "swiglu.py")
    assert main([path, "--device", "cuda"]) == 0
    assert "class ModelNew(nn.Module)" in capsys.readouterr().out
    monkeypatch.setattr(command, "ChildPool", lambda kind: nullcontext(pool))  # a pool of its own takes seconds
    assert main([path, "--list"]) == 0
    assert "fused rows" in capsys.readouterr().out
    assert main([str(tmp_path / "absent.py")]) == 2
