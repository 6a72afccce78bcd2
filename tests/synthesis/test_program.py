"""What references become, read off the program, the plan and the written source: no compiler is needed."""

from __future__ import annotations

import pytest

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.graph.nodes import Program
from synthesis.graph.program import read_program
from synthesis.strategies import propose
from tests.synthesis.checking import graphs, problem

X = "torch.randn(rows, n)"
TWO = [{"name": "a", "rows": 7, "n": 37}, {"name": "b", "rows": 12, "n": 264}]


def program(forward: str, inputs: str = X) -> Program:
    return read_program(graphs(problem(forward, inputs), TWO))


def drafted(source: str, kind: DeviceKind = DeviceKind.CPU) -> Draft:
    draft = propose(graphs(source, TWO), kind, number=0)
    assert draft is not None
    return draft


@pytest.mark.parametrize(
    "formula", ["x.mean(1, keepdim=True)", "x.amax(1)", "torch.softmax(x, 1)", "x.logsumexp(1)", "x.sum((0, 1), True)"]
)
def test_a_reduction_over_one_element_is_none(formula: str) -> None:
    """Else the row is that of the batch."""
    found = program(f"x = a0.sum(1, keepdim=True)\nreturn {formula}")
    reduced = [node for node in found.inputs_first() if node.kind == "reduce"]
    assert len(reduced) == (2 if "0" in formula else 1)


@pytest.mark.parametrize("kind", DeviceKind)
def test_an_embedding_takes_its_weights_first(kind: DeviceKind) -> None:
    source = problem("return F.embedding(a0, a1) * 2", "torch.zeros(rows, n, dtype=torch.int64), torch.randn(9, 16)")
    assert "torch.ops.aten.embedding.default(a1, a0)" in drafted(source, kind).source
