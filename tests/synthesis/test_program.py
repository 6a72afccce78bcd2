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


@pytest.mark.parametrize("copied", ["h.clone()", "h ** 1", "h.to(torch.float32, copy=True)", "h[:, :1].sum(1, True)"])
def test_a_copy_is_changed_in_place_alone(copied: str) -> None:
    (out,) = program(f"h = a0 * 2\ny = {copied}\ny.add_(1)\nreturn h + y").outputs
    assert [node.fn for node in out.inputs] == ["mul", "add"]


def test_a_copy_of_an_input_may_be_changed_in_place() -> None:
    (out,) = program("y = a0.clone()\ny.masked_fill_(y > 0, -1.0)\nreturn a0 + y").outputs
    assert [node.kind for node in out.inputs] == ["input", "pointwise"]


def test_without_changes_in_place_a_copy_is_its_source() -> None:
    assert [node.kind for node in program("return a0.clone().relu()").inputs_first()][:2] == ["input", "constant"]
