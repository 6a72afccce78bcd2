"""load_cuda without a GPU: it compiles, its errors carry the caller's lines, launching says what is missing."""

import ctypes
from pathlib import Path

import pytest
import torch

from evaluator.child import warpwright_native as native
from evaluator.child.warpwright_native import CompileError, CompilerMissing, CudaError, load_cuda


def _nvrtc_missing() -> str | None:
    try:
        native._nvrtc()
    except CompilerMissing as error:
        return str(error)
    return None


needs_nvrtc = pytest.mark.skipif(_nvrtc_missing() is not None, reason=f"NOT RUN, NEEDS NVRTC: {_nvrtc_missing()}")

GOOD = r"""
extern "C" __global__ void fill(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = VALUE;
}
"""


@needs_nvrtc
def test_compiles_to_a_cubin_with_defines():
    module = load_cuda(GOOD, defines={"VALUE": 1.5, "UNUSED": True}, flags=["--use_fast_math"])
    assert module.image.startswith(b"\x7fELF")
    assert module.target.startswith("sm_")


def test_what_was_compiled_is_kept_where_a_folder_is_named(monkeypatch, tmp_path):
    compiled = []

    def compiler(text, name, options):
        compiled.append(options)
        return f"cubin {len(compiled)}".encode()

    monkeypatch.setattr(native, "nvrtc_compile", compiler)
    monkeypatch.setenv("WARPWRIGHT_NATIVE_CACHE", str(tmp_path / "kept"))
    assert [load_cuda(GOOD, defines={"VALUE": v}).image for v in (1.5, 1.5, 2.5)] == [
        b"cubin 1",
        b"cubin 1",
        b"cubin 2",
    ]
    assert {path.read_bytes() for path in (tmp_path / "kept").glob("*.cubin")} == {b"cubin 1", b"cubin 2"}
    monkeypatch.delenv("WARPWRIGHT_NATIVE_CACHE")
    assert load_cuda(GOOD, defines={"VALUE": 1.5}).image == b"cubin 3"


@needs_nvrtc
def test_a_compile_error_names_the_line_of_this_file():
    with pytest.raises(CompileError) as caught:
        load_cuda(r"""
extern "C" __global__ void broken(float* y) {
  y[0] = nowhere;
}
""")
    text = Path(__file__).read_text().splitlines()
    line = next(i for i, part in enumerate(text, start=1) if "nowhere;" in part)
    assert f"test_load_cuda.py:{line}: error" in str(caught.value)
    assert "nowhere" in str(caught.value)
    assert caught.value.line == line


@needs_nvrtc
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: tests/gpu launches for real")
def test_launching_without_a_gpu_says_so():
    kernel = load_cuda(GOOD, defines={"VALUE": 1}).kernel("fill")
    with pytest.raises(CudaError, match="nothing can be launched"):
        kernel(grid=(1,), block=(1,), args=[1])


def test_arguments_take_the_width_that_the_kernel_declares():
    sizes = (4, 8, 4, 8, 1, 8)
    held = native._pack("k", [-1, -1, 0.5, 0.5, True, ctypes.c_int64(7)], sizes)
    raw = [bytes(ctypes.string_at(ctypes.addressof(v), n)) for v, n in zip(held, sizes, strict=True)]
    assert raw[0] == (-1).to_bytes(4, "little", signed=True)
    assert raw[1] == (-1).to_bytes(8, "little", signed=True)
    assert raw[2] == bytes(ctypes.c_float(0.5))
    assert raw[3] == bytes(ctypes.c_double(0.5))
    assert raw[4] == b"\x01"
    assert raw[5] == (7).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("args", "sizes", "words"),
    [
        ([1], (4, 4), "takes 2 arguments, got 1"),
        ([1 << 40], (4,), "does not fit"),
        ([1.0], (2,), "is a float"),
        ([torch.zeros(1)], (8,), "not on a CUDA device"),
        (["1"], (8,), "has type str"),
    ],
)
def test_wrong_arguments_are_named(args, sizes, words):
    with pytest.raises(CudaError, match=words):
        native._pack("k", args, sizes)


def test_macros():
    assert [native._macro(v) for v in (True, 3, 1.5, "float")] == ["1", "3", "1.5", "float"]
