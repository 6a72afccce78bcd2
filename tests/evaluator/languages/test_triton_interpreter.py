"""Triton on a machine without a GPU: the honest kernel, interpreted in a cage, gives the right numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from evaluator.devices.cpu import CpuBackend
from evaluator.languages.triton import TritonAdapter
from evaluator.sandbox.pool import ChildPool
from evaluator.subject import Arguments, Subject
from evaluator.types import DeviceKind
from tests.gpu.judging import candidate

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.compiles


@pytest.fixture(scope="module")
def pool() -> Iterator[ChildPool]:
    with CpuBackend().pool(TritonAdapter().child_environment(DeviceKind.CPU)) as made:
        yield made


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_kernel_is_right_when_interpreted(pool: ChildPool, dtype: str) -> None:
    with Subject.start(pool, CpuBackend(), candidate("honest_triton").source, "candidate") as subject:
        subject.construct("ModelNew", Arguments({"list": [100, dtype]}, ()), train=False, seed=1)
        x, residual = (torch.randn(5, 100).to(getattr(torch, dtype)) for _ in range(2))
        tree = {"tuple": [{"tensor": 0}, {"tensor": 1}]}
        ((_, (out, total)),) = subject.results(tree, [[x, residual]], timeout_s=30)
    wide = (x + residual).double()
    right = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    torch.testing.assert_close(total, x + residual)
    torch.testing.assert_close(out.double(), right, rtol=2e-3 if dtype == "float16" else 1e-6, atol=1e-6)
