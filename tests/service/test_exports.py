"""The exported file: really written, really run."""

from __future__ import annotations

import ast
import dataclasses
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.problem import read_problem
from evaluator.types import (
    BaselineTime,
    Candidate,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Evaluation,
    Interval,
    Language,
    Measurement,
    Ratio,
    Stage,
    Verdict,
    WorkloadFacts,
)
from service.exports import Export, file_stem, hf_kernel, package
from service.exports.parts.embed import one_line, raw_literal
from service.exports.python_file import build, hoist_future
from tests.support import scripts

PROBLEM = '''"""Scale and shift \\\\ with a "quoted" docstring."""
import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "rows": 8, "columns": 64, "device": "cpu"},
    {"name": "odd", "rows": 3, "columns": 7, "held_out": True},
    {"name": "gpu", "rows": 4096, "columns": 4096, "device": "cuda"},
]


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return x * self.scale + 1.0


def get_inputs(rows=8, columns=64):
    return [torch.randn(rows, columns)]


def get_init_inputs(columns=64):
    return [columns]
'''

RIGHT = '''"""A candidate."""
from __future__ import annotations

import ctypes

import torch
import torch.nn as nn
from warpwright_native import load_cpp

SOURCE = r"""
extern "C" void run(const float* x, const float* s, float* out, long rows, long columns) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) out[i * columns + j] = x[i * columns + j] * s[j] + OFFSET;
}
"""
CONFIG = {"OFFSET": 1}
lib = load_cpp(SOURCE, defines=CONFIG)
time = "a name that the check code must not shadow"


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert isinstance(time, str)
        out = torch.empty_like(x)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.scale, out)]
        lib.run(*pointers, ctypes.c_long(x.shape[0]), ctypes.c_long(x.shape[1]))
        return out
'''
WRONG = RIGHT.replace('"OFFSET": 1', '"OFFSET": 2')
MUTATING = RIGHT.replace("        out = torch.empty_like(x)", "        out = torch.empty_like(x)\n        x.zero_()")


def evaluation(candidate: Candidate) -> Evaluation:
    """A confirmed, passed Evaluation as the judge would send it."""
    interval = Interval(low=9.0, high=11.0)
    baselines = tuple(
        BaselineTime(mode=mode, workload="small", clock=Clock.CALLS, median_us=time, interval_us=interval)
        for mode, time in (("eager", 40.0), ("compile", 23.0))
    )
    return Evaluation(
        verdict=Verdict.PASSED,
        stage=Stage.CONFIRM,
        reason="confirmed",
        problem_hash=read_problem(PROBLEM, "p").hash,
        candidate_hash=candidate.hash,
        evidence={"pairs": 8},
        device=Device(kind=DeviceKind.CPU, name='A "CPU" \\ with a name', uuid="0"),
        environment=Environment(python="3.11.2", torch="2.13.0", compiler="g++ 12.2.0"),
        measurements=(
            Measurement(
                workload="small",
                clock=Clock.CALLS,
                samples_us=(10.0, 10.1),
                median_us=10.0,
                interval_us=interval,
                baselines=baselines,
            ),
        ),
        speedups=(
            Ratio(against="fastest", value=2.3, interval=Interval(low=2.2, high=2.4, confidence=0.95)),
            Ratio(against="eager", value=4.0, interval=Interval(low=3.9, high=4.1)),
        ),
    )


def facts(*shapes: tuple[str, tuple[int, ...]], dtype: str = "float32") -> tuple[WorkloadFacts, ...]:
    """Return the cases of an Admission for Workloads with one input each."""
    return tuple(
        WorkloadFacts(
            workload=name,
            inputs=(f"{dtype} {list(shape)}",),
            outputs=(),
            bytes_moved=0,
            constructor={"list": [shape[-1]]},
            arguments={"list": [{"tensor": 0}]},
        )
        for name, shape in shapes
    )


def export(source: str) -> Export:
    candidate = Candidate(source=source, language=Language.CPP)
    return Export(
        problem=read_problem(PROBLEM, "Scale & shift"),
        candidate=candidate,
        candidate_id="cand_01",
        device_kind=DeviceKind.CPU,
        evaluation=evaluation(candidate),
        confirmed=True,
        facts=facts(("small", (8, 64)), ("odd", (3, 7))),
        dated="2026-11-21T08:00:00Z",
        proposed_by="synthesiser (create)",
    )


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", path.name, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=path.parent,
        env={
            "PATH": "/usr/bin:/bin",
            "TMPDIR": str(path.parent),
            "HOME": str(path.parent),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        check=False,
    )


@pytest.mark.compiles
def test_a_right_kernel_passes_its_own_check_far_from_the_checkout(tmp_path: Path) -> None:
    path = tmp_path / "best.py"
    path.write_text(build(export(RIGHT)), encoding="utf-8")
    done = run(path, "--check", "--seeds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert "small" in done.stdout
    assert "odd" in done.stdout
    assert "gpu" not in done.stdout
    assert "rough" in done.stdout
    assert list((tmp_path / ".cache" / "warpwright").glob("*.so"))  # the next import compiles nothing


@pytest.mark.compiles
@pytest.mark.parametrize(("source", "complaint"), [(WRONG, "differ"), (MUTATING, "was changed")])
def test_a_wrong_kernel_fails_its_check(tmp_path: Path, source: str, complaint: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(build(export(source)), encoding="utf-8")
    done = scripts.run_file(path, "--check", "--no-time")
    assert done.returncode == 1, done.stdout + done.stderr
    assert complaint in done.stdout
    assert "FAILED" in done.stdout


@pytest.mark.compiles
def test_a_kernel_for_cuda_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "gpu.py"
    path.write_text(build(dataclasses.replace(export(RIGHT), device_kind=DeviceKind.CUDA)), encoding="utf-8")
    done = scripts.run_file(path, "--check")
    assert done.returncode in (0, 2)
    if done.returncode == 2:
        assert "PyTorch sees no CUDA device" in done.stderr


@pytest.mark.compiles
def test_the_header_says_where_the_kernel_comes_from(tmp_path: Path) -> None:
    text = build(export(RIGHT))
    header = ast.get_docstring(ast.parse(text)) or ""
    problem = read_problem(PROBLEM, "p")
    for expected in (
        "2.30 x as fast as the fastest PyTorch baseline, confirmed",
        f"sha256 {problem.hash}",
        f"sha256 {Candidate(source=RIGHT, language=Language.CPP).hash}",
        "torch 2.13.0",
        "the fastest baseline (compile)",
        "interval 2.200 to 2.400",
        "2026-11-21T08:00:00Z",
        "python this_file.py --check",
    ):
        assert expected in header
    path = tmp_path / "info.py"
    path.write_text(text, encoding="utf-8")
    done = scripts.run_file(path, "--info")
    assert done.returncode == 0
    assert done.stdout.strip() == header.strip()


def test_folders_say_how_they_are_used() -> None:
    shown = {
        package.build: ("README.md", ("`pip install .` in this folder", "python -m scale_shift_cpu --check")),
        hf_kernel.build: ("CARD.md", ("kernels.get_local_kernel", 'layer_name="ScaleShift"', "python -m pytest tests")),
    }
    for form, (name, expected) in shown.items():
        with zipfile.ZipFile(io.BytesIO(form(export(RIGHT)))) as packed:
            text = packed.read(next(one for one in packed.namelist() if one.endswith(name))).decode()
        for words in expected:
            assert words in text, text
        assert "this_file" not in text


def test_a_layer_takes_the_arguments_of_an_inherited_forward() -> None:
    source = PROBLEM.replace("class Model(nn.Module)", "class Original(nn.Module)") + "\n\nclass Model(Original): ...\n"
    inherited = dataclasses.replace(export(RIGHT), problem=read_problem(source, "Scale & shift"))
    with zipfile.ZipFile(io.BytesIO(hf_kernel.build(inherited))) as packed:
        layers = [packed.read(one).decode() for one in packed.namelist() if one.endswith("layers.py")]
    assert layers
    for text in layers:
        assert "return _forward(self, x)" in text, text


def test_what_is_not_confirmed_is_not_called_confirmed() -> None:
    text = build(dataclasses.replace(export(RIGHT), confirmed=False))
    assert "NOT confirmed" in text
    assert "baseline, confirmed" not in text


def test_a_speedup_over_a_baseline_that_was_overtaken_is_called_an_estimate() -> None:
    estimate = Ratio(against="fastest", value=1.25, interval=Interval(low=1.2, high=1.3))
    text = build(dataclasses.replace(export(RIGHT), confirmed=False, estimate=estimate))
    assert "estimated at 1.25 x the fastest baseline; it was judged once,\nagainst compile, before" in text
    assert "NOT confirmed" in text
    assert "estimated  1.250 x against the fastest baseline, 1.200 to 1.300" in text
    assert "x against compile, no longer the fastest baseline, 95 % interval" in text
    assert "the fastest baseline (compile)" not in text


def test_the_file_imports_nothing_but_torch_and_the_standard_library() -> None:
    tree = ast.parse(build(export(RIGHT)))
    modules = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]  # type: ignore[union-attr]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert modules <= sys.stdlib_module_names | {"torch", "triton", "warpwright_native"}


def test_a_hostile_name_cannot_break_out_of_the_header() -> None:
    problem = read_problem(PROBLEM, '"""\nimport os; os.abort()\n"""')
    tree = ast.parse(build(dataclasses.replace(export(RIGHT), problem=problem)))
    assert not any(isinstance(node, ast.Attribute) and node.attr == "abort" for node in ast.walk(tree))


@given(st.text())
def test_embedded_text_comes_out_as_it_went_in(text: str) -> None:
    assert ast.literal_eval(raw_literal(text)) == text


@given(st.text())
def test_a_line_of_the_header_stays_one_line(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    assert '"' not in shown
    assert "\\" not in shown


def test_future_imports_move_to_the_top() -> None:
    source, future = hoist_future("from __future__ import annotations, division\nx = 1\n")
    assert future == "from __future__ import annotations, division\n"
    assert source == "pass\nx = 1\n"
    source, future = hoist_future('"""é"""; from __future__ import (\n  annotations,\n); import torch\n')
    assert (source, future) == ('"""é"""; pass; import torch\n', "from __future__ import annotations\n")
    assert hoist_future("not python (") == ("not python (", "")


def test_file_names_are_module_names() -> None:
    assert file_stem("RMSNorm + residual/../x", DeviceKind.CPU) == "rmsnorm_residual_x_cpu"
    assert file_stem("2 things", DeviceKind.CUDA) == "k_2_things_cuda"
    assert file_stem("../..", DeviceKind.CPU) == "kernel_cpu"
