"""Facts of a GPU in prompts: examples that are right there, the device in words, and torch.compile's own kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.serve import make_backend
from evaluator.types import Language
from prompts.device import described
from tests.prompts.test_guides import example

ROOT = Path(__file__).resolve().parents[2]
CHECK = """
import sys, torch
sys.path.insert(0, {child!r})
exec(compile(open({file!r}).read(), {file!r}, "exec"), module := {{"__name__": "example"}})
for rows, n in ((1, 8), (3, 7), (2, 64), (5, 1000), (64, 4096)):
    x = torch.randn(rows, n, device="cuda", dtype=torch.bfloat16)
    want = x.double() / torch.sqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6)
    got = module["ModelNew"](1e-6)(x).double()
    assert ((got - want).abs() <= 0.01 * want.abs() + 1e-3).all(), (rows, n, (got - want).abs().max())
print("right")
"""
COMPILED = """
import torch
from evaluator.child.generated import generated
made = torch.compile(lambda x: torch.softmax(x * 2, -1), mode="max-autotune-no-cudagraphs", dynamic=False)
made(torch.randn(64, 1000, device="cuda"))
print(generated({}, [])["code"])
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("language", [Language.CUDA, Language.TRITON])
def test_an_example_is_right_in_bfloat16(language: Language, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(example(language, general=False), encoding="utf-8")
    assert run(CHECK.format(child=str(ROOT / "evaluator" / "child"), file=str(file))) == "right\n"


def test_the_kernels_of_torch_compile_are_found() -> None:
    code = run(COMPILED)
    assert "@triton.jit" in code
    assert "call(" in code


def test_the_device_is_told_in_words() -> None:
    backend = make_backend("cuda:0")
    told = described(backend.describe().facts, None)
    assert {"multiprocessors", "L2 cache", "32-bit registers a multiprocessor"} <= set(told)
    assert "shared memory a block, at most" in told
    assert "ordinal" not in told
