"""Triton compiles for an absent GPU, launch by launch."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

triton = pytest.importorskip("triton", reason="Triton is not installed")
import triton.language as tl  # noqa: E402

from evaluator.child.gpu.cubin import resource_usage  # noqa: E402
from evaluator.child.reference.recipes import Recipes  # noqa: E402
from evaluator.child.session import Session  # noqa: E402
from evaluator.child.triton_build.offline import compile_ahead, recording  # noqa: E402

ROOT = Path(__file__).parents[3]


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


@triton.jit
def _store_number(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 7.0)


@pytest.fixture(autouse=True)
def _private_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def test_launches_are_compiled_and_recorded():
    x = torch.empty(1000, 64, device="meta", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    with recording(90) as found:
        _add_one[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    (launch,) = found.launches
    assert launch.name == "_add_one"
    assert launch.grid == (63,)
    assert launch.num_warps == 4
    (usage,) = resource_usage(launch.cubin)
    assert usage["name"] == "_add_one"
    assert int(usage["registers"]) > 4


def test_a_compile_error_is_told_and_stops_nothing_else():
    x = torch.empty(64, device="meta")
    with recording(90) as found:
        _broken[(1,)](x, BLOCK=64)
        _add_one[(1,)](x, x, 64)
    assert [launch.name for launch in found.launches] == ["_add_one"]
    assert "CompilationError" in found.failed
    assert "nowhere" in found.failed


def test_a_kernel_that_had_compiled_before_is_recorded_too():
    x = torch.empty(64, device="meta")
    for _ in range(2):
        with recording(90) as found:
            _store_number[(1,)](x, BLOCK=64)
            _store_number[(1,)](x, BLOCK=64)
        assert (len(found.launches), found.failed) == (2, "")


def _load(monkeypatch, name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_a_candidate_is_compiled_for_the_recipes_shapes(monkeypatch, tmp_path):
    session = Session()
    session.module = _load(monkeypatch, "reference", ROOT / "examples" / "problems" / "rmsnorm_residual.py")
    _load(monkeypatch, "candidate", ROOT / "tests" / "gpu" / "candidates" / "honest_triton.py")
    sizes = [{"rows": rows, "hidden": 1024, "dtype": "bfloat16", "device": "cuda"} for rows in (8, 1)]
    shapes = [Recipes(session).shapes({"sizes": one}, []) for one in sizes]
    assert [layout["shape"] for layout in shapes[0]["inputs"]["layouts"]] == [[8, 1024], [8, 1024]]
    assert compile_ahead({"shapes": shapes, "capability": 90}, []) == {"compiled": 2, "failed": "", "error": ""}
    assert list(tmp_path.glob("*/*.cubin"))


def test_a_candidate_may_ask_for_the_devices_properties(monkeypatch, tmp_path):
    """Many fill every multiprocessor, and build children see no GPU."""
    source = tmp_path / "fills.py"
    source.write_text(
        (ROOT / "tests" / "gpu" / "candidates" / "honest_triton.py").read_text() + "\n\nclass Filling(ModelNew):\n"
        "    def forward(self, *inputs):\n"
        "        assert torch.cuda.get_device_properties(inputs[0].device).multi_processor_count == 132\n"
        "        assert torch.cuda.get_device_capability() == (9, 0)\n"
        "        return super().forward(*inputs)\n\n\nModelNew = Filling\n"
    )
    session = Session()
    session.module = _load(monkeypatch, "reference", ROOT / "examples" / "problems" / "rmsnorm_residual.py")
    _load(monkeypatch, "candidate", source)
    shapes = [Recipes(session).shapes({"sizes": {"rows": 8, "hidden": 1024, "dtype": "bfloat16"}}, [])]
    assert compile_ahead({"shapes": shapes, "capability": 90}, []) == {"compiled": 1, "failed": "", "error": ""}


def test_a_candidate_that_looks_at_values_is_left_to_the_device(monkeypatch, tmp_path):
    source = tmp_path / "looks.py"
    source.write_text(
        "import torch\n\nclass ModelNew(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x if bool(x.sum() > 0) else -x\n"
    )
    _load(monkeypatch, "candidate", source)
    inputs = {"tree": {"list": [{"tensor": 0}]}, "layouts": [{"shape": [4], "stride": [1], "dtype": "float32"}]}
    shapes = [{"init": {"tree": {"list": []}, "layouts": []}, "inputs": inputs}]
    found = compile_ahead({"shapes": shapes, "capability": 90}, [])
    assert found["compiled"] == 0
    assert "meta" in found["failed"]
