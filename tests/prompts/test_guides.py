"""The examples in the guides of languages are kernels: they compile, and are right on odd sizes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.languages import ADAPTERS, detect
from evaluator.types import DeviceKind, Language
from evolution.tunables import read_tunables
from prompts.library import fill, guide

ROOT = Path(__file__).resolve().parents[2]
CHECK = """
import sys, torch
sys.path.insert(0, {child!r})
exec(compile(open({file!r}).read(), {file!r}, "exec"), module := {{"__name__": "example"}})
for rows, n in ((1, 1), (3, 7), (2, 64), (5, 1000), (4, 2048)):
    x = torch.randn(rows, n)
    want = x / torch.sqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6)
    got = module["ModelNew"](1e-6)(x)
    assert torch.allclose(got.double(), want, rtol=1e-5, atol=1e-6), (rows, n, (got - want).abs().max())
print("right")
"""


def example(language: Language, *, general: bool) -> str:
    text = fill(guide(language), brief=False, general=general)
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("general", [True, False])
@pytest.mark.parametrize("language", [language for language in Language if language is not Language.TORCH])
def test_an_example_is_in_its_language_and_uses_its_tunables(language: Language, general: bool) -> None:
    source = example(language, general=general)
    assert detect(source) is language
    tunables, configuration = read_tunables(source)
    assert tunables.keys() == configuration.keys()
    for name in tunables:
        assert len(re.findall(rf"\b{name}\b", source)) > 2, f"{name} is declared and never used"
    assert ("contiguous()" in source) is general


@pytest.mark.compiles
@pytest.mark.parametrize(
    "language",
    # tests/evaluator/languages/test_helion.py judges this one: importing Helion once more takes seconds.
    [Language.CPP, Language.TRITON, pytest.param(Language.HELION, marks=pytest.mark.soak)],
)
def test_an_example_is_right(language: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if language is Language.CPP and shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    if language is Language.TRITON:
        pytest.importorskip("triton")
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    if language is Language.HELION:
        if (lacking := ADAPTERS[language].missing(DeviceKind.CPU)) is not None:
            pytest.skip(lacking)
        monkeypatch.setenv("HELION_INTERPRET", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    file = tmp_path / "example.py"
    file.write_text(example(language, general=False), encoding="utf-8")
    code = CHECK.format(child=str(ROOT / "evaluator" / "child"), file=str(file))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "right\n", done.stderr[-2000:]
