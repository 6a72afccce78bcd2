"""torch's own extension builder in a cage: ninja is there, and what it built once is not built again."""

from __future__ import annotations

import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from evaluator.cage import bwrap
from evaluator.child import extensions, warpwright_native
from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.evaluator.rooms import CALLS_LIB, candidate, eager_only, problem

# Without torch's and Python's headers, which take half a minute.
INLINE = (
    '''
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n) {
  for (long r = 0; r < rows; r++) {
    float sum = 0;
    for (long i = 0; i < n; i++) sum += x[r * n + i] * x[r * n + i];
    for (long i = 0; i < n; i++) y[r * n + i] = x[r * n + i] / std::sqrt(sum / n + 1e-6f) * w[i];
  }
}
"""
load_inline("rms", cpp_sources=SOURCE, functions=None, is_python_module=False, no_implicit_headers=True,
            build_directory=FOLDER)
lib = ctypes.CDLL(FOLDER + "/rms.so")


'''
    + CALLS_LIB
)


@pytest.mark.usefixtures("workloads_alone")
def test_load_inline_builds_in_a_cage_and_later_children_load_what_it_built(judge: Judge) -> None:
    task = problem()
    one = candidate('import tempfile\nFOLDER = tempfile.mkdtemp(prefix="rms-")\n' + INLINE)
    found = judge.judge(task, one, eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, found.reason
    (name,) = judge.children.built.get(one) or {}
    assert name.startswith("native/")
    judge.children.built.put(
        one, {name: b"no library"}
    )  # so whoever builds it again notices nothing, and whoever loads it does
    again = judge.judge(task, one, eager_only(judge, task))
    assert again.verdict is not Verdict.PASSED
    assert "rms.so" in again.reason


class Built:
    """Stands in for torch's builder, whose function writes a build file and runs ninja."""

    def __init__(self) -> None:
        self.calls = 0
        self._write_ninja_file_and_build_library = self.write

    def write(self, name: str, sources: list[str], *, build_directory: str, **options: Any) -> None:
        self.calls += 1
        Path(build_directory, f"{name}.so").write_text(Path(sources[0]).read_text())


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Built:
    stand_in = Built()
    monkeypatch.setenv("WARPWRIGHT_NATIVE_CACHE", str(tmp_path / "kept"))
    extensions.cache_builds(stand_in)
    extensions.cache_builds(stand_in)
    return stand_in


def build(built: Built, folder: Path, source: str, **options: Any) -> str:
    folder.mkdir()
    (folder / "main.cpp").write_text(source)
    built._write_ninja_file_and_build_library(
        name="one", sources=[str(folder / "main.cpp")], build_directory=str(folder), **options
    )
    return (folder / "one.so").read_text()


def test_the_same_sources_and_options_are_built_once_wherever_they_lie(built: Built, tmp_path: Path) -> None:
    assert build(built, tmp_path / "a", "int a;", extra_cflags=["-O2"]) == "int a;"
    assert build(built, tmp_path / "b", "int a;", extra_cflags=["-O2"]) == "int a;"
    assert built.calls == 1
    assert build(built, tmp_path / "c", "int c;", extra_cflags=["-O2"]) == "int c;"
    assert build(built, tmp_path / "d", "int a;", extra_cflags=["-O3"]) == "int a;"
    assert built.calls == 3


def test_without_a_folder_to_keep_it_in_everything_is_built(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WARPWRIGHT_NATIVE_CACHE")
    build(built, tmp_path / "a", "int a;")
    build(built, tmp_path / "b", "int a;")
    assert built.calls == 2


def test_ninja_is_the_program_on_the_path_or_beside_python_and_never_a_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder, content in (("scripts", b"#!/bin/sh\n"), ("bin", b"\x7fELF")):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "ninja"
        program.write_bytes(content)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path / "scripts"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert bwrap.find_ninja() == str(tmp_path / "bin" / "ninja")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere"))
    assert bwrap.find_ninja() is None


def test_a_library_that_is_kept_nowhere_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WARPWRIGHT_NATIVE_CACHE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert warpwright_native.load_cpp('extern "C" int answer() { return 42; }').answer() == 42
    assert list(tmp_path.iterdir()) == []
