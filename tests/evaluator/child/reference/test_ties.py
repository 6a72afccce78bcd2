"""Selections that rounding alone decides: others are right, too, and so are the outputs that follow from
them."""

from __future__ import annotations

import pytest
import torch

from evaluator.child.reference.ties import Selection, TieTolerance
from evaluator.oracle.nan_and_ties import allow_alternatives, allow_other_ties
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge

INF = float("inf")


def _judged(judge: Judge, forward: str, x: torch.Tensor, actual: list[torch.Tensor]) -> bool:
    source = (
        f"import torch\ndef reference(x):\n    return {forward}\n"
        f"def get_inputs():\n    return [torch.randn({tuple(x.shape)})]\n"
    )
    problem = read_problem(source, "picks")
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(3))
        tree = oracle.inputs().tree
        (expected,) = oracle.expect(tree, [(x,)])
        expected = allow_alternatives(oracle, tree, (x,), expected, actual)
        assert reference.child.alive
    trios = zip(expected.targets, expected.limits, actual, strict=True)
    return all(target.compare(tensor, limit) is None for target, limit, tensor in trios)


def _ids(*rows: object) -> torch.Tensor:
    return torch.tensor(rows)


LOGITS = torch.tensor([[500.0, 1.0, 3.0, 2.0], [0.0, 1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("experts", "right"),
    [
        ([[0, 2], [3, 2]], True),
        ([[0, 1], [3, 2]], True),  # its share is zero like that of others
        ([[0, 0], [3, 2]], False),
        ([[0, 4], [3, 2]], False),
        ([[0, -1], [3, 2]], False),
        ([[0, 2], [3, 1]], False),
        ([[1, 0], [3, 2]], False),
    ],
)
def test_underflowed_scores_all_tie(judge: Judge, experts: list[list[int]], right: bool) -> None:
    forward = "(lambda found: (found.values, found.indices))(torch.topk(torch.softmax(x, -1), 2, dim=-1))"
    shares = torch.stack([torch.tensor([1.0, 0.0]), torch.softmax(LOGITS[1], 0)[[3, 2]]])
    assert _judged(judge, forward, LOGITS, [shares, _ids(*experts)]) is right


@pytest.mark.parametrize(
    ("forward", "x", "actual", "right"),
    [
        # One tenth and three tenths: equal but for rounding.
        ("(x * 0.1).cumsum(-1).argmax(-1)", [[1.0, 2.0, 1e-8]], [2], True),
        ("(x * 0.1).cumsum(-1).argmax(-1)", [[1.0, 2.0, 1e-3]], [1], False),
        ("x.argmax(-1)", [[1.0, 1.0000001, 0.5]], [0], False),  # inputs are as they are
        ("(x.square() - 2 * x).argmin(-1)", [[3.0, INF, -INF, 5.0]], [0], True),  # of NaN that infinities make
        ("(x.square() - 2 * x).argmin(-1)", [[3.0, INF, -INF, 5.0]], [4], False),
        ("(x.square() - 2 * x).argmin(-1)", [[3.0, 2.0, 4.0, 5.0]], [0], False),
        ("x.argmax(-1)", [[1.0, 5.0, 5.0]], [2], True),
        ("x.argmax(-1)", [[1.0, 5.0, 5.0]], [0], False),
        ("x.argmax(-1)", [[float("nan"), 1.0, float("nan")]], [2], True),
        ("x.argmax(-1)", [[float("nan"), 1.0, float("nan")]], [1], False),
        ("x.long().argmax(-1)", [[1.0, 5.0, 5.0]], [2], True),
        ("x.long().argmax(-1)", [[1.0, 5.0, 4.0]], [2], False),
        ("x.long().sort(-1).indices", [[4.0, 4.0, 2.0]], [[2, 1, 0]], True),
        ("x.long().sort(-1).indices", [[4.0, 4.0, 2.0]], [[2, 1, 1]], False),
        # What is no index is what it is, though elements there are equal.
        ("(x > 0).sum(-1)", [[1.0, 1.0, 0.0, 0.0]], [3], False),
        ("x.long().amax(-1)", [[1.0, 1.0, 0.0, 0.0]], [0], False),
        ("torch.where(x == 2, torch.arange(4), 4).amin(-1)", [[1.0, 2.0, 2.0, 0.0]], [2], False),
    ],
)
def test_indices_of_what_is_computed(
    judge: Judge, forward: str, x: list[list[float]], actual: list[object], right: bool
) -> None:
    assert _judged(judge, forward, torch.tensor(x), [_ids(*actual)]) is right


def test_outputs_that_follow_another_selection_are_right(judge: Judge) -> None:
    forward = "torch.tensor([10.0, 20.0, 30.0])[(x * 0.1).cumsum(-1).argmax(-1)]"
    x = torch.tensor([[1.0, 2.0, 1e-8], [1.0, 2.0, 3.0]])
    assert _judged(judge, forward, x, [torch.tensor([20.0, 30.0])])
    assert _judged(judge, forward, x, [torch.tensor([30.0, 30.0])])


PAIRS = "(lambda found: (found // 5, found % 5))(torch.topk(x * 1.0, 2, dim=-1).indices)"


@pytest.mark.parametrize(
    ("x", "halves", "places", "right"),
    [
        ([3.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [1, 0], [2, 0], True),
        ([3.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [0, 1], [0, 2], False),
        ([3.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [1, 1], [2, 2], False),
        ([7.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [1, 0], [2, 0], True),  # the other way round
        ([7.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [0, 1], [0, 2], True),
        ([0.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [1, 1], [2, 4], True),
        ([0.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [1, 1], [2, 9], False),  # there is no ninth
        ([0.0, 0, 0, 0, 0, 0, 0, 7.0, 0, 0], [0, 1], [2, 4], False),
    ],
)
def test_integers_computed_from_selections_may_be_any_where_ties_are_undecided(
    judge: Judge, x: list[float], halves: list[int], places: list[int], right: bool
) -> None:
    assert _judged(judge, PAIRS, torch.tensor([x]), [_ids(halves), _ids(places)]) is right


def test_a_mask_of_selections_keeps_its_count_where_ties_are_undecided(judge: Judge) -> None:
    forward = "torch.zeros_like(x, dtype=torch.int64).scatter(-1, torch.topk(x * 1.0, 2, dim=-1).indices, 1)"
    assert _judged(judge, forward, torch.zeros(1, 5), [_ids([0, 1, 1, 0, 0])])
    assert not _judged(judge, forward, torch.zeros(1, 5), [_ids([1, 1, 1, 1, 1])])


def test_a_reference_without_selections_is_not_run_again(judge: Judge) -> None:
    problem = read_problem(
        "import torch\ndef reference(x):\n    return x * 2\ndef get_inputs():\n    return [torch.randn(3)]\n", "picks"
    )
    with judge.session.references.start(problem) as reference:
        oracle = Oracle(problem, reference, {}, torch.Generator().manual_seed(3))
        made = oracle.inputs()
        (expected,) = oracle.expect(made.tree, [made.tensors])
        assert allow_other_ties(oracle, made.tree, made.tensors, expected, [torch.zeros(3)]) is None
        assert reference.selects is False


def test_unordered_selections_may_come_in_any_order() -> None:
    scores = torch.tensor([[1.0, 5.0, 3.0, 4.0]])
    tolerance = TieTolerance(torch.zeros_like(scores), torch.zeros(1, 1, dtype=torch.bool))
    mine, theirs = torch.tensor([[1, 3]]), torch.tensor([[3, 1]])
    assert torch.equal(tolerance.accept_given(Selection(scores, 1, mine, ordered=False), theirs), theirs)
    assert torch.equal(tolerance.accept_given(Selection(scores, 1, mine, ordered=True), theirs), mine)


@pytest.mark.parametrize(
    ("forward", "x", "actual", "right"),
    [
        ("x.argsort(dim=-1, stable=True)", [[5.0, 1.0, 5.0]], [[1, 0, 2]], True),
        ("x.argsort(dim=-1, stable=True)", [[5.0, 1.0, 5.0]], [[1, 2, 0]], False),
        ("x.argsort(-1)", [[5.0, 1.0, 5.0]], [[1, 2, 0]], True),
        ("x.long().sort(dim=-1, stable=True).indices", [[4.0, 4.0, 2.0]], [[2, 1, 0]], False),
        ("x.argsort(dim=-1, stable=True)", [[float("nan"), 1.0, float("nan")]], [[1, 2, 0]], False),
        # Computed, they are equal but for rounding, which may order them either way.
        ("(x * 0.1).cumsum(-1).argsort(dim=-1, stable=True)", [[1.0, 2.0, 1e-8]], [[0, 2, 1]], True),
        ("(x * 0.1).cumsum(-1).argsort(dim=-1, stable=True)", [[1.0, 2.0, 1e-3]], [[0, 2, 1]], False),
        ("(x * 0.1).argsort(dim=-1, stable=True)", [[3.0, 1.0, 3.0]], [[1, 2, 0]], False),
    ],
)
def test_equal_scores_keep_their_order_where_that_is_asked_for(
    judge: Judge, forward: str, x: list[list[float]], actual: list[object], right: bool
) -> None:
    assert _judged(judge, forward, torch.tensor(x), [_ids(*actual)]) is right


GATE = "torch.zeros_like(x).scatter(-1, torch.topk(x * 1.0, 2, dim=-1).indices, 0.5)"


@pytest.mark.parametrize(
    ("picked", "right"),
    [
        ([0, 1], True),
        ([8, 9], True),
        ([0, 9], True),
        ([4, 5], True),
        ([], False),
    ],
)
def test_where_all_scores_tie_other_unreturned_selections_are_right(
    judge: Judge, picked: list[int], right: bool
) -> None:
    x = torch.zeros(1, 10)
    actual = torch.zeros(1, 10)
    actual[0, picked] = 0.5
    assert _judged(judge, GATE, x, [actual]) is right


def test_where_no_scores_tie_other_selections_are_wrong(judge: Judge) -> None:
    x = torch.arange(10.0).reshape(1, 10)
    actual = torch.zeros(1, 10)
    actual[0, [8, 9]] = 0.5
    assert _judged(judge, GATE, x, [actual])
    assert not _judged(judge, GATE, x, [actual.roll(1, 1)])


@pytest.mark.parametrize(("picks", "right"), [((4, 7), True), ((0, 5), True), ((4, 4), False), ((7, 8), False)])
def test_any_two_of_eight_tied_scores_are_right(judge: Judge, picks: tuple[int, int], right: bool) -> None:
    """A GPU's top-k takes zeros of positive sign first, which probabilities do not show."""
    table = "torch.linspace(1.0, 3.0, 13)"
    forward = (
        f"(lambda best: torch.stack([{table}[best].sum(-1), {table}[best].square().sum(-1)], -1))"
        "(torch.topk(torch.softmax(x, -1), 2).indices)"
    )
    found = torch.linspace(1.0, 3.0, 13)[torch.tensor([picks] * 3)]
    actual = torch.stack([found.sum(-1), found.square().sum(-1)], -1)
    scores = torch.tensor([[0.0] * 8 + [-3.0] * 4] * 3)
    assert _judged(judge, forward, scores, [actual]) is right


def test_tied_selections_in_order_of_place() -> None:
    scores = torch.tensor(
        [[5.0, 1.0, 7.0, 1.0, 1.0, 0.0], [3.0, 3.0, 3.0, 3.0, 3.0, 3.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]]
    )
    made = torch.topk(scores.double(), 3)
    selection = Selection(scores.double(), 1, made.indices, ordered=True)
    tolerance = TieTolerance(torch.zeros(3, 6).double(), torch.zeros(3, 1, dtype=torch.bool))
    places = torch.arange(6)
    assert tolerance.first_tied(selection, places).tolist() == [[2, 0, 1], [0, 1, 2], [0, 1, 2]]
    assert tolerance.first_tied(selection, 5 - places).tolist() == [[2, 0, 4], [5, 4, 3], [0, 1, 2]]
    assert tolerance.first_tied(selection, (places - 2) % 6).tolist() == [[2, 0, 3], [2, 3, 4], [0, 1, 2]]
    assert tolerance.first_tied(selection, (3 - places) % 6).tolist() == [[2, 0, 3], [3, 2, 1], [0, 1, 2]]
    down = Selection(scores.double().t().contiguous(), 0, made.indices.t().contiguous(), ordered=True)
    turned = TieTolerance(torch.zeros(6, 3).double(), torch.zeros(1, 3, dtype=torch.bool))
    assert turned.first_tied(down, places).t().tolist() == tolerance.first_tied(selection, places).tolist()
    every = torch.sort(scores.double(), descending=True)
    whole = Selection(scores.double(), 1, every.indices, ordered=True)
    assert torch.equal(tolerance.first_tied(whole, places), every.indices)


def test_tied_neighbours_are_swapped() -> None:
    scores = torch.tensor([[5.0, 5.0, 4.0, 4.0, 4.0], [5.0, 4.0, 4.0, 3.0, 2.0]]).double()
    selection = Selection(scores, 1, torch.tensor([[0, 1, 2], [0, 1, 2]]), ordered=True)
    tolerance = TieTolerance(torch.zeros(2, 5).double(), torch.zeros(2, 1, dtype=torch.bool))
    assert tolerance.with_swapped_pairs(selection, 0).tolist() == [[1, 0, 2], [0, 1, 2]]
    assert tolerance.with_swapped_pairs(selection, 1).tolist() == [[0, 1, 2], [0, 2, 1]]
