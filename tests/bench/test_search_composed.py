"""The composed kernels of a landscape: each occurs once, declares its choices, and computes the right result."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.search import attention, linear
from bench.search.composed import DEEP_PROBLEMS, LATTICES, PROBLEMS, designs, reference, slips
from bench.search.designs import items
from evolution.tunables import apply_configuration, read_tunables

ROOT = Path(__file__).parents[2]
SIZES = {
    "rows": 13, "hidden": 96, "inner": 80, "out": 80, "batch": 2, "heads": 4, "kv_heads": 2, "length": 151,
    "queries": 3, "keys": 300, "tokens": 5, "vocabulary": 700,
}  # fmt: skip
CHECK = """
import json, sys, torch
from tests.synthesis.checking import Pair, pick
for name, reference, kernel, sizes in json.loads(sys.stdin.read()):
    pair = Pair(reference, kernel, sizes)
    got, eager, oracle = pair.run()
    error = (got[0].double() - oracle[0].reshape(got[0].shape)).abs().max() / oracle[0].abs().max()
    assert error < 1e-3, f"{name}: {error}"
print("right")
"""


@pytest.mark.parametrize("problem", PROBLEMS)
def test_designs_differ_and_say_what_can_be_chosen(problem: str) -> None:
    found = list(designs(problem, 3, 40))
    assert len({design.family for design in found}) == len(found) == 40
    assert found == list(designs(problem, 3, 40))
    for design in found:
        ast.parse(design.source)
        tunables, configuration = read_tunables(design.source)
        assert 1 < len(tunables) == len(configuration)
        assert all(f'CONFIG["{name}"]' in design.source for name in tunables)


def test_every_base_and_edit_is_used_somewhere() -> None:
    found = [design for problem in PROBLEMS for design in designs(problem, 0, 60)]
    assert {*linear.BASES, *attention.BASES} == {d.base for d in found}
    edits = {*linear.EDITS, *attention.EDITS}
    assert edits == {edit for design in found for edit in design.edits}


@pytest.mark.parametrize("problem", DEEP_PROBLEMS)
def test_a_deep_design_is_one_edit_from_another(problem: str) -> None:
    found = list(designs(problem, 3, 30))
    assert len({design.family for design in found}) == len(found) == 30
    recorded = {frozenset(design.edits) for design in found}
    assert max(len(edits) for edits in recorded) > 3
    for design in found:
        ast.parse(design.source)
        edits = frozenset(design.edits)
        assert not edits or any(edits - {one} in recorded for one in edits)
        tunables, _ = read_tunables(design.source)
        assert all(f'CONFIG["{name}"]' in design.source for name in tunables)
    assert 1 <= sum(item.origin is not None for item in items(found[:9], 0, *slips(problem))) <= 3


def test_a_deep_landscape_is_the_same_for_the_same_seed() -> None:
    assert list(designs(DEEP_PROBLEMS[0], 3, 20)) == list(designs(DEEP_PROBLEMS[0], 3, 20))


def test_every_edit_of_a_draft_is_used_somewhere() -> None:
    for name, lattice in LATTICES.items():
        found = [d for n in range(4) for d in designs(f"deep.{name}-any", n, 100)]
        assert set(lattice.edits) == {edit for design in found for edit in design.edits}, name


def test_a_problem_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="nothing_at_all"):
        reference("nothing_at_all-decode")


@pytest.mark.soak
@pytest.mark.parametrize("problems", [PROBLEMS, DEEP_PROBLEMS[:5], DEEP_PROBLEMS[5:]])
def test_the_kernels_compute_what_the_reference_does(problems: tuple[str, ...], tmp_path: Path) -> None:
    """Run a few designs of each problem in Triton's interpreter, small and in float32."""
    cases = []
    for problem in problems:
        for number, design in enumerate(list(designs(problem, 0, 24))[::8]):
            tunables, _ = read_tunables(design.source)
            smallest = {name: min(values) for name, values in tunables.items()}
            path = tmp_path / f"{problem.replace('-', '_').replace('.', '_')}_{number}.py"
            path.write_text(apply_configuration(design.source, smallest) if tunables else design.source)
            loaded = (
                "import importlib.util as u\n"
                f"s = u.spec_from_file_location({path.stem!r}, {str(path)!r})\n"
                "m = u.module_from_spec(s)\ns.loader.exec_module(m)\nModelNew = m.ModelNew\n"
            )
            cases.append((f"{problem} {design.base} {design.edits}", reference(problem), loaded, SIZES))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHECK], input=json.dumps(cases), cwd=ROOT, env=environment,
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "right", done.stderr[-2000:]
