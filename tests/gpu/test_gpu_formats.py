"""Exports as the projects themselves judge them, on a GPU and from the user's own checkouts.

WARPWRIGHT_GPU_MODE=reference-kernels WARPWRIGHT_KERNELBENCH=KernelBench pytest tests/gpu/test_gpu_formats.py
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Language
from service.exports import KERNELS, Export
from warpwright.formats import import_one

ROOT = Path(__file__).resolve().parents[2]


def checkout(variable: str) -> Path:
    path = os.environ.get(variable)
    if not path or not Path(path).is_dir():
        pytest.skip(f"{variable} names no checkout")
    return Path(path)


def rewritten(path: Path) -> tuple[Export, str]:
    """Return the reference of a foreign problem as a kernel, and the problem's text."""
    made = import_one(str(path))
    assert made is not None
    source = made.source.replace("class Model(", "class ModelNew(").replace("super(Model,", "super(ModelNew,")
    export = Export(
        problem=read_problem(made.source, made.name), candidate=Candidate(source=source, language=Language.TORCH),
        candidate_id="cand_1", device_kind=DeviceKind.CUDA, evaluation=None, confirmed=False, facts=(),
        dated="2026-01-01T00:00:00Z", proposed_by="hand",
    )  # fmt: skip
    return export, made.source


@pytest.mark.parametrize("name", ["vectoradd_py", "grayscale_py", "matmul_py"])
def test_gpu_modes_own_eval_passes_a_submission(name: str, tmp_path: Path) -> None:
    folder = checkout("WARPWRIGHT_GPU_MODE") / "problems" / "pmpp_v2" / name
    submission = KERNELS["gpumode"].build(rewritten(folder)[0])
    assert isinstance(submission, str)
    task = yaml.safe_load((folder / "task.yml").read_text(encoding="utf-8"))
    for entry in task["files"]:
        if entry["source"] == "@SUBMISSION@":
            (tmp_path / entry["name"]).write_text(submission, encoding="utf-8")
        else:
            shutil.copy(folder / entry["source"], tmp_path / entry["name"])
    specs = "\n".join("; ".join(f"{key}: {value}" for key, value in spec.items()) for spec in task["tests"])
    (tmp_path / "specs.txt").write_text(specs + "\n", encoding="utf-8")
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as told:
        try:
            done = subprocess.run(
                [sys.executable, "eval.py", "test", "specs.txt"], cwd=tmp_path, pass_fds=(writing,), check=False,
                env={**os.environ, "POPCORN_FD": str(writing)}, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
        finally:
            os.close(writing)
        lines = told.read()
    assert "check: pass" in lines, lines + done.stderr[-2000:]


@pytest.mark.parametrize("name", ["level1/19_ReLU.py", "level1/40_LayerNorm.py", "level2/59_Matmul_Swish_Scaling.py"])
def test_kernelbenchs_own_evaluation_accepts_a_file(name: str, tmp_path: Path) -> None:
    folder = checkout("WARPWRIGHT_KERNELBENCH")
    path = folder / "KernelBench" / name
    export, _ = rewritten(path)
    packed = KERNELS["kernelbench"].build(export)
    assert isinstance(packed, bytes)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        (kernel,) = archive.namelist()
        archive.extractall(tmp_path)
    script = (
        "import sys\nfrom pathlib import Path\nfrom bench.rate.kernelbench import evaluate\n"
        "texts = [Path(one).read_text() for one in sys.argv[1:3]]\n"
        "print(evaluate(*texts, 'cuda', sys.argv[3], 'cuda:0', 10))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(tmp_path / kernel), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder / "src"), *sys.path[1:]])},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert "'passed': True" in done.stdout, done.stdout + done.stderr[-2000:]
