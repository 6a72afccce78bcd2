"""What references become, read off the program, the plan and the written source: no compiler is needed."""

from __future__ import annotations

import re

import pytest

from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.graph.nodes import Program
from synthesis.graph.program import read_program
from synthesis.strategies import sequence
from tests.synthesis.checking import graphs, problem

X = "torch.randn(rows, n)"
TWO = [{"name": "a", "rows": 7, "n": 37}, {"name": "b", "rows": 12, "n": 264}]


def program(forward: str, inputs: str = X) -> Program:
    return read_program(graphs(problem(forward, inputs), TWO))


def drafted(source: str, kind: DeviceKind = DeviceKind.CPU) -> Draft:
    return next(iter(sequence(graphs(source, TWO), kind, 0)))


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
    source = problem("return F.embedding(a0, a1) * 2", "torch.zeros(rows, n).long(), torch.randn(9, 16)")
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


@pytest.mark.parametrize("name", ["V", "M", "n", "template", "new", "load", "select", "iota", "INF", "std"])
@pytest.mark.parametrize("kind", DeviceKind)
def test_an_input_may_have_a_name_that_kernels_use(name: str, kind: DeviceKind) -> None:
    source = problem("return torch.softmax(a0 * 2, -1)", X).replace("a0", name)
    text = drafted(source, kind).source
    assert f"def forward(self, {name}):" in text
    assert f"{name}.data_ptr()" in text or f", {name}, " in text
    inside = set(re.findall(r"const float\* (\w+)|(\w+)_ptr", text))
    assert inside
    assert not {(name, ""), ("", name)} & inside


def test_a_size_has_no_name_of_an_input() -> None:
    """Name a dimension of `x` otherwise than the input `x_1`, in a recipe that names no size."""
    source = problem("return a0 + a1", "torch.randn(5, 33), torch.randn(33)", sizes="").replace("a0", "x")
    found = read_program(graphs(source.replace("a1", "x_1"), [{"name": "a"}]))
    assert set(found.symbols) == {"x_0", "x_1_size"}
    names = [node.name for node in found.inputs_first() if node.kind != "constant"]
    assert len(set(names) | set(found.symbols)) == len(names) + 2


@pytest.mark.parametrize("kind", DeviceKind)
def test_a_helper_class_finds_what_it_needs_of_torch(kind: DeviceKind) -> None:
    block = "class Block(nn.Module):\n    def __init__(self, act=F.relu):\n        super().__init__()\n\n\n"
    source = problem("return a0 * 2", X, init="self.block = Block()").replace("class Model", f"{block}class Model")
    assert "import torch.nn.functional as F" in drafted(source, kind).source


def test_an_input_called_as_a_function_is_none() -> None:
    source = problem("return a0 + 1", X).replace("a0", "tanh")
    (out,) = read_program(graphs(source, TWO)).outputs
    assert out.fn == "add"


WHOLE = "torch.randn(rows, n), torch.zeros(rows, n).long()"


@pytest.mark.parametrize(
    ("formula", "call"),
    [
        ("a1.sum(1)", "aten.sum.dim_IntList"),
        ("a1.amax(1)", "aten.amax.default"),
        ("a1 * 100003", "aten.mul.Tensor"),
        ("a1.float() * 2", "aten.to.dtype"),
        ("a0 * a1", "aten.mul.Tensor"),
        ("(a0 * 1e10).long() * 0.5", "aten.to.dtype"),
        ("a0 * (a1 > 3000000000).float()", "aten.gt.Scalar"),
        ("torch.where(a1 == a1.t().t(), a0, 0)", "aten.eq.Tensor"),
        ("torch.cat([a1, a1])", "aten.cat.default"),
        ("(a1.to(torch.int8) + a1.to(torch.int8)).float()", "aten.to.dtype"),
        ("((a1 > 0).to(torch.uint8) - (a0 > 0).to(torch.uint8)) * a0", "aten.sub.Tensor"),
    ],
)
def test_whole_numbers_that_do_not_fit_are_left_to_libraries(formula: str, call: str) -> None:
    calls = [node.fn for node in program(f"return {formula} + 1", WHOLE).inputs_first() if node.kind == "library"]
    assert calls[0] == call


def test_triton_computes_with_64_bits_and_reduces_in_float32() -> None:
    for formula, left in {
        "a1 * 100003 + a1.abs().clamp(max=7)": "",
        "(a1.float() + (a0 * 1e10).long()) * 2": "",
        "a1.amax(1) * 2": "amax",
        "a0 * (torch.arange(a0.shape[1]) * 10**9)": "mul",
    }.items():
        draft = drafted(problem(f"return {formula}", WHOLE), DeviceKind.CUDA)
        assert left in draft.left
        assert bool(left) == bool(draft.left)


@pytest.mark.parametrize(
    "formula",
    [
        "torch.gather(a0, 1, a1)",
        "F.cross_entropy(a0, a1[:, 0])",
        "a0 * (a1[:, :1] == torch.arange(a0.shape[1]))",
        "a0 + torch.arange(a0.shape[1]) * 2",
        "(a0 > 0).sum(1)",
        "(a0 > 0).long().sum(1) * 2",
        "a0 * (a1 >= 0)",
        "a0 * (a1 != -100)",
        "torch.tril(a0)",
        "(a0 * 10).to(torch.int8)",
        "(a0.to(torch.uint8) & 15) * a0",
    ],
)
def test_indices_and_small_whole_numbers_are_fused(formula: str) -> None:
    found = program(f"return {formula}", WHOLE)
    assert not [node.fn for node in found.inputs_first() if node.kind == "library"]


@pytest.mark.parametrize(
    ("forward", "left"),
    [
        ("v, i = torch.max(a0.int(), 1)\nreturn v * 2, i", "max"),
        ("v, i = a0.int().min(1)\nreturn a0 + v[:, None] * i[:, None]", "min"),
        ("return (a0.to(torch.int32).floor() + 1) * a0", "floor"),  # along a row, C++ has no code for it
        ("return a0[:, :3] * torch.tensor([1.0, 2.0, float('inf')])", "tensor"),
        ("return a0[:, [0, 2, 4]] * 2", "tensor"),
    ],
)
def test_what_has_no_code_stays_a_library_call(forward: str, left: str) -> None:
    draft = drafted(problem(forward, X))
    assert "are library calls" in draft.left
    assert left in draft.left.split("(")[-1]


@pytest.mark.parametrize("formula", ["a0.to(torch.int32).clamp(min=0) * a0", "a0.to(torch.int32).abs() * a0"])
def test_choices_of_integers_are_fused(formula: str) -> None:
    draft = drafted(problem(f"return {formula}", X))
    assert not draft.left
    assert "select(" in draft.source


def test_places_of_extrema_that_nothing_uses_are_not_computed() -> None:
    draft = drafted(problem("v, i = torch.max(a0, 1)\nreturn v * 2", X))
    assert not draft.left
    assert "# Fused: max, mul." in draft.source


def test_a_model_may_derive_from_a_class_of_the_reference() -> None:
    base = "class Base(nn.Module):\n    def scale(self):\n        return 2\n\n\n"
    source = problem("return a0 * self.scale()", X).replace("class Model(nn.Module)", f"{base}class Model(Base)")
    text = drafted(source).source
    assert "class ModelNew(Base):" in text
    assert "class Base(nn.Module):" in text


@pytest.mark.parametrize(
    ("formula", "title"),
    [
        ("torch.tanh(a0) * 2", "Fused rows in C++ for one thread."),
        ("a0.mean(1, keepdim=True)", "Fused rows in C++ for one thread."),
        ("torch.softmax(a0, 1)", "Fused rows in C++ for one thread; costly values that a later pass needs are kept."),
    ],
)
def test_the_header_tells_of_later_passes_where_there_are_some(formula: str, title: str) -> None:
    assert drafted(problem(f"return {formula}", X)).source.splitlines()[0] == f"# {title}"


def test_the_header_of_operations_on_elements_tells_of_no_rows() -> None:
    source = problem("return a0 * 2", X)
    draft = next(iter(sequence(graphs(source, [{"name": "a", "rows": 9, "n": 99999}]), DeviceKind.CUDA, 0)))
    assert draft.source.startswith("# Fused operations on each element in Triton.")


def test_the_header_lists_reductions_that_keep_dimensions_and_no_views() -> None:
    text = drafted(problem("return a0.view(-1, a0.shape[1]) - a0.mean(1, keepdim=True) * a0.amax(1, True)", X)).source
    assert text.splitlines()[1] == "# Fused: mean, amax, mul, sub."


@pytest.mark.parametrize(
    "formula",
    [
        "torch.multiply(torch.subtract(a0, a1), torch.divide(a0, a1)).negative().absolute().clip(-1, 2)",
        "F.adaptive_avg_pool1d(a0[None], 1)[0] + a0.sign() + F.logsigmoid(a0) + F.softshrink(a0, 0.3)",
        "F.glu(torch.cat([a0, a1], 1), 1)",
        "F.smooth_l1_loss(a0, a1, beta=0.5) + F.huber_loss(a0, a1, delta=2.0)",
        "F.binary_cross_entropy(a0.sigmoid(), a1) + F.binary_cross_entropy_with_logits(a0, a1)",
        "F.kl_div(a0, a1, reduction='batchmean') + F.kl_div(a0, a1, reduction='sum', log_target=True)",
        "F.cosine_similarity(a0, a1, dim=1)",
    ],
)
def test_operations_with_a_rule_are_fused(formula: str) -> None:
    found = program(f"return {formula}", f"{X}, {X}")
    assert not [node.fn for node in found.inputs_first() if node.kind == "library"]
