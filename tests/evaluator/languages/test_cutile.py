"""cuTile: what its text must say, what a machine needs for it, and which files later children get."""

from __future__ import annotations

import ast
import re
import sqlite3
from pathlib import Path

import pytest

from evaluator.child import build_ops, compiler_caches
from evaluator.errors import Rejection
from evaluator.languages import cutile, detect
from evaluator.languages.cutile import CutileAdapter
from evaluator.sandbox import build_cache
from evaluator.screening.restricted import is_restricted
from evaluator.screening.screen import screen
from evaluator.types import Candidate, DeviceKind, Language, Verdict
from prompts.library import fill, guide
from tests.evaluator.rooms import problem

CUTILE = CutileAdapter()


def example() -> str:
    text = re.search(r"```python\n(.*?)```", fill(guide(Language.CUTILE), brief=False, general=False), re.DOTALL)
    assert text is not None
    return text[1]


@pytest.mark.parametrize(
    "line",
    [
        "from cuda.tile.tune import exhaustive_search",
        "from cuda.tile import tune",
        "import cuda.tile.tune",
        "best = ct.tune.exhaustive_search",
    ],
)
def test_a_kernel_that_times_configurations_is_refused(line: str) -> None:
    source = example() + "\n" + line + "\n"
    with pytest.raises(Rejection, match=r"cuda\.tile\.tune") as caught:
        screen(problem(), Candidate(source=source, language=detect(source)))
    assert caught.value.verdict is Verdict.INVALID_SUBMISSION
    assert caught.value.evidence["line"] == source.count("\n")


def test_the_guides_example_is_fair_and_restricted() -> None:
    assert CUTILE.objection(ast.parse(example())) is None
    assert is_restricted(example())
    assert not is_restricted(example().replace("current_stream(),", "ct.compilation,"))
    assert CUTILE.gpu_kernels(example()) == {"rms"}


def test_on_a_cpu_it_is_refused(judge) -> None:
    seen = judge.judge(problem(), Candidate(source=example(), language=Language.CUTILE))
    assert seen.verdict is Verdict.INVALID_SUBMISSION
    assert "judge them on a GPU" in seen.reason


@pytest.mark.parametrize(
    ("versions", "toolkit", "driver", "lacks"),
    [
        ({}, None, "", "cuda-tile is not installed"),
        ({"cuda-tile": "1.7.0"}, None, "", "no tileiras"),
        ({"cuda-tile": "1.7.0", "nvidia-cuda-tileiras": "13.4.92"}, None, "", "no tileiras"),
        ({"cuda-tile": "1.7.0"}, "/usr/local/cuda/bin/tileiras", "570.86.15", "driver 580"),
        ({"cuda-tile": "1.7.0"}, "/usr/local/cuda/bin/tileiras", "580.159.04", None),
        ({"cuda-tile": "1.7.0", **dict.fromkeys(cutile._ASSEMBLER, "13.4.92")}, None, "580.159.04", None),
        ({"cuda-tile": "1.7.0", **dict.fromkeys(cutile._ASSEMBLER, "13.4.92")}, None, "", None),
    ],
)
def test_what_a_machine_lacks_is_said(tmp_path: Path, monkeypatch, versions, toolkit, driver, lacks) -> None:
    monkeypatch.setattr(cutile, "version", versions.get)
    monkeypatch.setattr("shutil.which", lambda name, path: toolkit)
    about = tmp_path / "version"
    if driver:
        about.write_text(f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build\n")
    monkeypatch.setattr(cutile, "DRIVER_FACTS", about)
    found = CUTILE.missing(DeviceKind.CUDA)
    assert found is None if lacks is None else lacks in (found or "")


def test_its_cache_goes_to_later_children(tmp_path: Path, monkeypatch) -> None:
    own, job = tmp_path / "own" / "cubins", tmp_path / "job"
    own.mkdir(parents=True)
    (own / "cache.db").write_bytes(b"kept")
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", str(own))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "none"))
    found = dict(compiler_caches.kept())
    assert found == {"cutile/cubins": [own / "cache.db"]}
    assert build_cache._NAME.fullmatch("cutile/cubins/cache.db")
    (job / "cutile" / "cubins").mkdir(parents=True)
    (job / "cutile" / "cubins" / "cache.db").write_bytes(b"given")
    monkeypatch.setenv("WARP_JOB", str(job))
    later = tmp_path / "later" / "cubins"
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", str(later))
    compiler_caches.restore()
    assert (later / "cache.db").read_bytes() == b"given"


def test_kernels_are_reported_from_its_cache(tmp_path: Path, monkeypatch) -> None:
    with sqlite3.connect(tmp_path / "cache.db") as database:
        database.execute("CREATE TABLE cache (key TEXT, blob BLOB, atime REAL)")
        database.execute("INSERT INTO cache VALUES ('a', ?, 1.0)", (b"cubin",))
    database.close()
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(build_ops.sys.modules, "cuda.tile", object())
    monkeypatch.setattr(build_ops, "resource_usage", lambda image: [{"name": image.decode(), "registers": 32}])
    assert {"name": "cubin", "registers": 32} in build_ops.kernels({}, [])["kernels"]
