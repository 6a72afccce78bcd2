"""Slots of blocks: each fault is told apart, and what fits becomes a right file in Triton's interpreter (float32)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from synthesis.errors import SlotsError
from synthesis.slots import GUIDE, expand
from tests.synthesis.checking import ROOT
from tests.synthesis.slot_answers import GATE, LOSS, SOFTMAX

CHECK = """
import importlib.util, json, pathlib, sys, tempfile
import torch
import torch.nn.functional as F
from synthesis.slots import expand
from tests.synthesis.slot_answers import GATE, LOSS, NORM, SOFTMAX

def model(name, code):
    path = pathlib.Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(expand(code))
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.ModelNew()

torch.manual_seed(0)
x, y, w = torch.randn(3, 5, 37), torch.randn(3, 5, 37), torch.randn(37)
wide, target = torch.randn(2, 2500) * 5, torch.tensor([2499, 0])
cut = torch.where(torch.arange(2500) < 1100, float("-inf"), wide)
h = x + y
cases = [
    ("softmax", SOFTMAX, (x,), torch.softmax(x * 0.125, -1)),
    ("lanes without elements", SOFTMAX, (cut,), torch.softmax(cut * 0.125, -1)),
    ("norm", NORM, (x, y, w), h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * w),
    ("loss", LOSS, (wide, target), F.cross_entropy(wide, target, reduction="none")),
    ("gate", GATE, (x.transpose(0, 1), y.transpose(0, 1)), (F.silu(x) * y).transpose(0, 1)),
    ("nothing", GATE, (x[:0], y[:0]), x[:0]),
]
for name, code, inputs, expected in cases:
    found = model(name.replace(" ", "_"), code)(*inputs)
    right = found.shape == expected.shape and torch.allclose(found, expected, atol=1e-5, rtol=1e-5)
    print(json.dumps([name, "right" if right else f"{found} for {expected}"]))
"""


@pytest.mark.compiles
def test_filled_blocks_are_right() -> None:
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "1"},
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert found == dict.fromkeys(found, "right")
    assert len(found) == 6


FAULTS = [
    (("# block: rows", "# block: flash"), "there is no block 'flash'"),
    (("# block: rows", "# a kernel"), "names no block: begin"),
    (("def write(v, top, inverse)", "def write(v, top, inverse"), "not Python: line"),
    (("def finish(peak, total)", "def finnish(peak, total)"), "there is no slot `finnish`"),
    (("def finish(peak, total):\n    return peak, 1.0 / total\n", ""), "slot `finish` is missing"),
    (("def write(v, top, inverse)", "def write(v, top, inverse, y)"), "slot `write` has no `y` to take"),
    (("def write(v, top, inverse)", "def write(v, top, *inverse)"), "plain parameters alone"),
    (("def value(x):\n", "def value(x):\n    return x\n\ndef value(x):\n"), "slot `value` is written twice"),
    (("return x * 0.125", "return tl.load(x)"), "slot `value` uses `tl.load`: memory"),
    (("return peak, 1.0 / total", "return peak"), "slot `finish` returns 1 values where 2 are wanted"),
    (("    return x * 0.125", "    x * 0.125"), "slot `value` ends in its one `return`"),
    (('{"x": "element"}', '{"x": "matrix"}'), "input `x` is 'matrix'"),
    (('{"x": "element"}', '{"x": "column"}'), "no input is an `element`"),
    (('{"x": "element"}', "inputs"), "INPUTS must be a literal"),
    (('{"x": "element"}', '{"v": "element"}'), "`v` cannot name an input"),
    (('STATS = ["top", "inverse"]', "STATS = 3"), "STATS must be a list"),
    (("class ModelNew(", "class Model("), "belongs to no slot"),
    (("return rows(x=x)", "return x"), "never calls `rows(...)`"),
    (("def merge(peak, total,", "def merge(total, peak,"), "slot `merge` takes exactly (peak, total, other_peak"),
    (("def value(x):", "LOG2 = 1.44\n\ndef value(x):"), "(`LOG2 = 1.44`) belongs to no slot"),
]


@pytest.mark.parametrize(("change", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_what_does_not_fit_is_refused_with_the_reason(change: tuple[str, str], words: str) -> None:
    assert change[0] in SOFTMAX
    with pytest.raises(SlotsError) as caught:
        expand(SOFTMAX.replace(*change, 1))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (GATE.replace("class ModelNew", "def step(v):\n    return v\n\nclass ModelNew"), "no use without STATE"),
        (GATE.replace("def write(v):\n    return v\n", ""), "give one of `write`"),
        (GATE.replace("def write(v)", "def result(n)").replace("return v\n", "return n\n"), "made of STATS"),
        (GATE.split("class ModelNew")[0], "there is no class ModelNew"),
    ],
)
def test_slots_that_do_not_go_together_are_refused(code: str, words: str) -> None:
    with pytest.raises(SlotsError) as caught:
        expand(code)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "value", ["1 + " * 5000 + "1", "float('-' + 'inf')", str(10**400)], ids=["deep", "no literal", "huge"]
)
def test_a_hostile_start_value_is_refused(value: str) -> None:
    with pytest.raises(SlotsError):
        expand(SOFTMAX.replace('float("-inf"), "total"', f'{value}, "total"', 1))


def test_the_guide_names_every_slot() -> None:
    assert all(f"`{name}(...)`" in GUIDE for name in ("value", "step", "merge", "finish", "write", "result"))


def test_equal_answers_make_equal_files() -> None:
    assert expand(LOSS) == expand(LOSS.replace("\n\n", "\n\n\n"))
