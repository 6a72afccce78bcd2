"""The Triton and CUDA adapters: what they know from text, and the build stage without a GPU."""

from pathlib import Path

import pytest

from evaluator.child.build_ops import build_imports, kernels
from evaluator.errors import ChildError
from evaluator.languages import detect, gpu_kernels
from evaluator.languages.base import BuildTarget, build_by_importing
from evaluator.languages.cuda import CudaAdapter
from evaluator.languages.triton import TritonAdapter
from evaluator.types import DeviceKind, Language
from tests.evaluator.languages.test_load_cuda import needs_nvrtc

CANDIDATES = Path(__file__).parents[2] / "gpu" / "candidates"


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
    assert "bfloat16" in (adapter.refuses(DeviceKind.CPU, ["float32", "bfloat16"]) or "")
    assert adapter.refuses(DeviceKind.CPU, ["float32", "float16"]) is None
    assert adapter.refuses(DeviceKind.CUDA, ["bfloat16"]) is None
    assert not CudaAdapter().timed_on(DeviceKind.CPU)


def test_kernels_are_seen_under_decorators():
    assert gpu_kernels((CANDIDATES / "honest_triton.py").read_text())
    assert gpu_kernels("@triton.autotune(configs=[], key=[])\n@triton.jit(do_not_specialize=[0])\ndef k(x): pass")
    assert not gpu_kernels("import triton\ndef k(x): pass")
    assert not gpu_kernels("def (")


@needs_nvrtc
def test_building_reports_resources_or_the_line():
    found = build_imports({"path": str(CANDIDATES / "honest_cuda.py")}, [])
    assert all(set(kernel) >= {"name", "registers"} for kernel in kernels({}, [])["kernels"])
    ours = {one["name"]: one for one in found["kernels"] if one["name"].startswith("add_rmsnorm_")}
    assert ours.keys() >= {"add_rmsnorm_float32", "add_rmsnorm_bfloat16"}
    assert all(int(one["registers"]) > 8 for one in ours.values())
    with pytest.raises(RuntimeError, match="undeclared") as caught:  # of the module that candidates import, by its name
        build_imports({"path": str(CANDIDATES / "broken_cuda.py")}, [])
    assert type(caught.value).__name__ == "CompileError"
    text = (CANDIDATES / "broken_cuda.py").read_text().splitlines()
    assert "undeclared" in text[caught.value.line - 1]


class Failing:
    """A child whose import fails, with this kind of error; what it is asked is kept."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.asked: list[str] = []

    def request(self, op, **fields):
        self.asked.append(op)
        if self.kind:
            raise ChildError(self.kind, "candidate.py:3: no", "", output="")
        return {"kernels": []}


@pytest.mark.parametrize("kind", ["RuntimeError", "AttributeError", "CompilerMissing"])
def test_what_fails_for_want_of_a_gpu_is_left_to_the_gpu(kind):
    facts = build_by_importing(Failing(kind), DeviceKind.CUDA)
    assert facts.error is None
    assert "no" in facts.log


@pytest.mark.parametrize("kind", ["CompileError", "SyntaxError"])
def test_what_fails_everywhere_is_refused_at_once(kind):
    assert build_by_importing(Failing(kind), DeviceKind.CUDA).error is not None
    assert build_by_importing(Failing("RuntimeError"), DeviceKind.CPU).error is not None


def test_triton_is_compiled_ahead_where_the_gpu_is_known():
    for kind, capability, ahead in (
        (DeviceKind.CUDA, 90, True),
        (DeviceKind.CUDA, 0, False),
        (DeviceKind.CPU, 0, False),
    ):
        child = Failing()
        TritonAdapter().build(child, kind, BuildTarget([], capability))
        assert ("triton_ahead" in child.asked) is ahead
    child = Failing("RuntimeError")  # it does not even import: nothing to compile
    assert TritonAdapter().build(child, DeviceKind.CPU, BuildTarget()).error is not None
    assert child.asked == ["build_imports"]
