"""The kernels of a landscape: designs and their edits are source that differs as declared; a recording works."""

from __future__ import annotations

import ast
import collections
import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.search.designs import EDITS, Design, apply_edits, bases, designs, hand_written, items, patch_line, slip
from evaluator.types import DeviceKind
from evolution.tunables import read_tunables
from tests.synthesis import checking

COUNT = 12
ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "examples" / "problems" / "rmsnorm_residual.py").read_text()


@pytest.fixture(scope="module")
def made() -> list[Design]:
    return bases(checking.graphs(REFERENCE, checking.sizes_of(REFERENCE, "cuda")), DeviceKind.CUDA, 0)


@pytest.mark.parametrize("name", [name for name in EDITS if name not in ("quick",)])
def test_an_edit_leaves_a_module_that_parses_and_says_what_can_be_chosen(name: str, made: list[Design]) -> None:
    found = [design for base in made if (design := apply_edits(base, (name,))) is not None]
    assert found, "it applies nowhere"
    for design in found:
        ast.parse(design.source)
        tunables, configuration = read_tunables(design.source)
        assert set(tunables) == set(configuration)
        assert f'CONFIG["{name.upper()}"]' not in design.source or name.upper() in tunables


def test_kernels_occur_once_and_repeat(made: list[Design]) -> None:
    chosen = list(designs(made, REFERENCE, 3, COUNT, hand_written("rmsnorm_residual")))
    assert len({design.family for design in chosen}) == COUNT
    assert {"reference", "compiled", "by hand: rmsnorm_residual_rows"} <= {design.base for design in chosen}
    hashes = [item.hash for item in items(chosen, 3)]
    assert len(set(hashes)) == len(hashes)
    assert hashes == [
        item.hash for item in items(list(designs(made, REFERENCE, 3, COUNT, hand_written("rmsnorm_residual"))), 3)
    ]
    slips = [item for item in items(chosen, 3) if item.origin is not None]
    assert 0.1 < len(slips) / len(hashes) < 0.3
    assert all(item.origin in hashes for item in slips)


def test_a_slip_changes_one_line_of_the_kernels(made: list[Design]) -> None:
    source = made[0].source
    lines = source.split("\n")
    first = next(n for n, line in enumerate(lines) if line.startswith("@triton.jit"))
    last = next(n for n, line in enumerate(lines) if line.startswith("class ModelNew"))
    changed = collections.Counter(slip(source, random.Random(seed)) for seed in range(60))
    assert len(changed) > 30
    for found in changed:
        assert found is not None
        assert first < found[0] < last
        different = [n for n, line in enumerate(patch_line(source, found).split("\n")) if line != lines[n]]
        assert different == [found[0]]


def written_lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.mark.soak
def test_a_recording_has_a_line_for_each_kernel_and_goes_on_where_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.search.record", "rmsnorm_residual", "--device", "cpu"]
    command += ["--shards", "1", "--output", str(tmp_path), "--most", "4"]
    known: list[str] = []
    for more in ([], ["--resume"]):
        done = subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
        assert "kernels of 1 problems recorded" in done.stdout
        lines = [json.loads(text) for text in written_lines(tmp_path / "rmsnorm_residual.jsonl.gz")]
        kernels = [line for line in lines if line["line"] == "kernel"]
        assert [line["hash"] for line in kernels[: len(known)]] == known
        known = [line["hash"] for line in kernels]
        families = {line["family"] for line in lines if line["line"] == "design"}
        assert {line["family"] for line in kernels} <= families
        passed = [line for line in kernels if line["verdict"] == "PASSED"]
        assert passed
        assert all(row["us"] > 0 and row["samples"] >= 3 for line in passed for row in line["rows"])
    assert len(known) == 8
