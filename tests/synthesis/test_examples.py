"""Every example problem has a C++ Candidate that is right on the CPU's workloads, held-out ones included."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import ROOT, Pair, graphs, sizes_of
from tests.synthesis.together import Together

PROBLEMS = sorted((ROOT / "examples" / "problems").glob("*.py"))


@functools.cache
def drafted(path: Path) -> list[Draft]:
    source = path.read_text(encoding="utf-8")
    return list(sequence(graphs(source, sizes_of(source, "cpu")[:2]), DeviceKind.CPU, 0))


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    together.compile(draft.source for path in PROBLEMS for draft in drafted(path)[:2])


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda p: p.stem)
def test_example(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    drafts = drafted(path)
    assert drafts
    for draft in drafts[:2]:
        for workload in sizes_of(source, "cpu"):
            Pair(source, draft.source, {k: v for k, v in workload.items() if k != "name"}).check()
