"""The Triton and CUDA adapters: what they know from text, and the build stage without a GPU."""

from pathlib import Path

import pytest

from evaluator.child.build_ops import build_imports, kernels
from evaluator.child.warpwright_native import CompileError
from evaluator.languages import detect
from evaluator.languages.cuda import CudaAdapter
from evaluator.languages.triton import TritonAdapter, has_kernels
from evaluator.types import DeviceKind, Language
from tests.evaluator.test_load_cuda import needs_nvrtc

CANDIDATES = Path(__file__).parents[1] / "gpu" / "candidates"


def test_candidates_are_recognised():
    found = {path.stem: detect(path.read_text()) for path in CANDIDATES.glob("*.py")}
    assert found["honest_triton"] is Language.TRITON
    assert found["honest_cuda"] is Language.CUDA
    assert found["plain_torch"] is Language.TORCH


def test_triton_is_interpreted_on_a_cpu_untimed_and_never_with_bf16():
    adapter = TritonAdapter()
    assert adapter.child_environment(DeviceKind.CPU) == {"TRITON_INTERPRET": "1"}
    assert adapter.child_environment(DeviceKind.CUDA) == {}
    assert not adapter.timed_on(DeviceKind.CPU)
    assert "bf16" in (adapter.refuses(DeviceKind.CPU, ["float32", "bfloat16"]) or "")
    assert adapter.refuses(DeviceKind.CPU, ["float32", "float16"]) is None
    assert adapter.refuses(DeviceKind.CUDA, ["bfloat16"]) is None
    assert not CudaAdapter().timed_on(DeviceKind.CPU)


def test_kernels_are_seen_under_decorators():
    assert has_kernels((CANDIDATES / "honest_triton.py").read_text())
    assert has_kernels("@triton.autotune(configs=[], key=[])\n@triton.jit(do_not_specialize=[0])\ndef k(x): pass")
    assert not has_kernels("import triton\ndef k(x): pass")
    assert not has_kernels("def (")


@needs_nvrtc
def test_building_reports_resources_or_the_line():
    found = build_imports({"path": str(CANDIDATES / "honest_cuda.py")}, [])
    assert all(set(kernel) >= {"name", "registers"} for kernel in kernels({}, [])["kernels"])
    names = {kernel["name"] for kernel in found["kernels"]}
    assert {"add_rmsnorm_float32", "add_rmsnorm_bfloat16"} <= names
    assert all(int(kernel["registers"]) > 8 for kernel in found["kernels"])
    with pytest.raises(CompileError, match="undeclared") as caught:
        build_imports({"path": str(CANDIDATES / "broken_cuda.py")}, [])
    text = (CANDIDATES / "broken_cuda.py").read_text().splitlines()
    assert "undeclared" in text[caught.value.line - 1]
