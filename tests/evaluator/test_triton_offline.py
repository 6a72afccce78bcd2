"""Triton compiles for a GPU that is not there, launch by launch."""

import pytest
import torch

triton = pytest.importorskip("triton", reason="Triton is not installed")
import triton.language as tl  # noqa: E402

from evaluator.child.cubin import resource_usage  # noqa: E402
from evaluator.child.triton_offline import recording  # noqa: E402


@triton.autotune(
    configs=[triton.Config({"BLOCK": 1024}, num_warps=4), triton.Config({"BLOCK": 2048}, num_warps=8)], key=["n"]
)
@triton.jit
def _add_one(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1.0, mask=at < n)


@triton.jit
def _broken(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), nowhere)  # noqa: F821


@pytest.fixture(autouse=True)
def _private_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def test_launches_are_compiled_and_recorded():
    x = torch.empty(1000, 64, device="meta", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    with recording(90) as launches:
        _add_one[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    (launch,) = launches
    assert launch.name == "_add_one"
    assert launch.grid == (63,)
    assert launch.num_warps == 4
    (usage,) = resource_usage(launch.cubin)
    assert usage["name"] == "_add_one"
    assert int(usage["registers"]) > 4


def test_a_compile_error_comes_through():
    x = torch.empty(64, device="meta")
    with recording(90), pytest.raises(triton.compiler.errors.CompilationError, match="nowhere"):
        _broken[(1,)](x, BLOCK=64)
