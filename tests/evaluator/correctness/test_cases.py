"""Cases are kept for the next Candidate, and never shown to the same one twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from evaluator.correctness.cases import CaseCache, PreparedCases, prepare_cases
from evaluator.errors import ChildCrashed, Rejection
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.judge import Judge
from evaluator.subject import Subject
from evaluator.types import Problem, Verdict, Workload
from tests.evaluator.rooms import candidate, eager_only, forward, problem


@pytest.fixture
def asked(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the calls of each request to the reference; no case is kept before."""
    found: list[int] = []
    usual = Oracle.expect

    def expect(oracle: Oracle, tree, calls, rounding=()):
        found.append(len(calls))
        return usual(oracle, tree, calls, rounding)

    monkeypatch.setattr(Oracle, "expect", expect)
    monkeypatch.setattr(judge.check_stage, "cases", CaseCache(256 << 20))
    return found


def test_several_candidates_are_checked_with_the_same_cases_and_none_of_them_twice(judge: Judge, asked: list[int]):
    task = problem()
    wrong = [forward(f"return right(x, self.weight) * {1 + n / 10}") for n in range(1, 4)]
    for one in wrong:
        assert judge.judge(task, one, eager_only(judge, task)).verdict is Verdict.INCORRECT_VALUES
        assert len(asked) == 1  # by the first of them
    asked.clear()
    assert judge.judge(task, wrong[0], eager_only(judge, task)).verdict is Verdict.INCORRECT_VALUES
    assert len(asked) == 1  # it has seen the others
    assert max(asked) > 10


def shown(task: Problem) -> Sizes:
    return Sizes(task.workloads[0].name, task.workloads[0].sizes)


def make(task: Problem, reference: Subject, generator: torch.Generator) -> PreparedCases:
    found = prepare_cases(task, reference, shown(task), generator, first=True)
    assert found is not None
    return found


def test_varied_sizes_take_turns_with_all_kinds_of_values(judge: Judge) -> None:
    task, generator = problem(), torch.Generator().manual_seed(3)
    usual = {kind.name for kind in values.AT_OTHER_SIZES}
    seen = []
    with judge.session.references.lend(task) as reference:
        for rows in range(3, 7):
            varied = Sizes(f"rows={rows}", {**task.workloads[0].sizes, "rows": rows}, adversarial=False)
            found = prepare_cases(task, reference, varied, generator, first=False)
            assert found is not None
            seen += [{case.name for case in found.cases} & {kind.name for kind in values.ADVERSARIAL}]
    assert all(usual <= names for names in seen)
    extra = [names - usual for names in seen]
    assert sum(map(len, extra)) == len(set().union(*extra)) >= 2  # values at which nothing is informative are left out


def test_what_is_kept_comes_with_its_parameters_in_a_new_order(judge: Judge) -> None:
    task, kept = problem(), CaseCache(256 << 20)
    generator = torch.Generator().manual_seed(3)
    with judge.session.references.lend(task) as reference:
        first = make(task, reference, generator)
        kept.put(task, candidate("A"), shown(task), first)
        before = dict(first.oracle.parameters)
        first.oracle.randomise_state()
        assert kept.take(task, candidate("A"), shown(task), reference, generator) is None
        again = kept.take(task, candidate("B"), shown(task), reference, generator)
        assert again is not None
        assert [case.name for case in again.cases] != [case.name for case in first.cases]
        assert sorted(case.name for case in again.cases) == sorted(case.name for case in first.cases)
        assert all(torch.equal(again.oracle.parameters[name], value) for name, value in before.items())
        case = again.cases[0]
        (target,) = again.oracle.targets(again.tree, [case.tensors], case.expected)
        assert values.same_bits(target.targets[0].oracle, case.expected.targets[0].oracle)


def test_sixteen_candidates_at_the_most_share_cases(judge: Judge) -> None:
    task, kept = problem(), CaseCache(256 << 20)
    generator = torch.Generator().manual_seed(3)
    with judge.session.references.lend(task) as reference:
        kept.put(task, candidate("0"), shown(task), make(task, reference, generator))
        taken = [kept.take(task, candidate(str(n)), shown(task), reference, generator) for n in range(1, 18)]
    assert [one is not None for one in taken] == [True] * 15 + [False] * 2


def test_memory_bounds_what_is_kept_and_hidden_sizes_never_are(judge: Judge) -> None:
    task = problem()
    generator = torch.Generator().manual_seed(3)
    with judge.session.references.lend(task) as reference:
        one = make(task, reference, generator)
        assert one.bytes_held() > sum(t.nbytes for case in one.cases[:-2] for t in case.tensors)
        for most_bytes, sizes in (
            (one.bytes_held() - 1, shown(task)),
            (256 << 20, replace(shown(task), hidden=True)),
        ):
            kept = CaseCache(most_bytes)
            kept.put(task, candidate("A"), sizes, one)
            assert kept.take(task, candidate("B"), sizes, reference, generator) is None
        kept = CaseCache(one.bytes_held() + 1)
        other = replace(shown(task), label="another")
        kept.put(task, candidate("A"), shown(task), one)
        kept.put(task, candidate("A"), other, one)
        assert kept.take(task, candidate("B"), other, reference, generator) is None  # no room beside its own Problem's
        assert kept.take(task, candidate("B"), shown(task), reference, generator) is not None
        following = replace(task, source=f"{task.source}# again\n")
        assert kept.put(following, candidate("A"), shown(task), one)  # another Problem's make room
        assert kept.take(task, candidate("C"), shown(task), reference, generator) is None
        kept.clear()
        assert kept.take(following, candidate("C"), shown(task), reference, generator) is None


@pytest.mark.parametrize(("body", "tried"), [("x.tanh() + x", True), ("x.topk(2).values", False)])
def test_values_far_from_zero_are_tried_where_no_rounding_decides_a_selection(
    judge: Judge, body: str, tried: bool
) -> None:
    text = f"import torch\ndef reference(x):\n    return {body}\ndef get_inputs():\n    return [torch.randn(8, 16)]\n"
    task = replace(read_problem(text, "p"), workloads=(Workload(name="one", sizes={}),))
    with judge.session.references.lend(task) as reference:
        made = make(task, reference, torch.Generator().manual_seed(3))
    far = {values.THOUSAND_SPREADS.name, values.TEN_THOUSAND_SPREADS.name}
    assert (far & {case.name for case in made.cases} != set()) is tried


def test_a_reference_that_is_gone_is_told_so(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task, kept = problem(), CaseCache(256 << 20)
    generator = torch.Generator().manual_seed(3)

    def gone(*_: object) -> None:
        raise ChildCrashed(signal=9)

    with judge.session.references.lend(task) as reference:
        kept.put(task, candidate("A"), shown(task), make(task, reference, generator))
        monkeypatch.setattr(Oracle, "construct_again", gone)
        with pytest.raises(Rejection) as found:
            kept.take(task, candidate("B"), shown(task), reference, generator)
        assert found.value.verdict is Verdict.INVALID_REFERENCE
        assert kept.take(task, candidate("C"), shown(task), reference, generator) is None


ROWS = """
import torch

WORKLOADS = [{"name": "few", "n": 400}, {"name": "more", "n": 701}]


class Model(torch.nn.Module):
    def forward(self, boxes, score):
        return boxes[score > 0] * 2


def get_inputs(n=400):
    return [torch.randn(n, 64), torch.randn(n)]
"""


def test_a_reference_whose_shapes_depend_on_values_is_refused_and_not_who_does_the_same(judge: Judge) -> None:
    task = read_problem(ROWS, "rows")
    same = candidate(ROWS.replace("class Model(", "class ModelNew("), head="")
    found = judge.judge(task, same, eager_only(judge, task))
    assert found.verdict is Verdict.INVALID_REFERENCE, found.reason
    assert "on few the shapes of outputs depend on the inputs' values" in found.reason
    assert "a mask in place of nonzero()" in found.reason


SOFTMAX = """
import torch

WORKLOADS = [{"name": "short", "rows": 8, "n": 1024}, {"name": "long", "rows": 8, "n": 2048}]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, dim=-1)


def get_inputs(rows=8, n=1024):
    return [torch.randn(rows, n) * 4]
"""
ZEROS_BEHIND_THE_EDGE = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        padded = torch.nn.functional.pad(x, (0, (1 << (n - 1).bit_length()) - n))
        return torch.softmax(padded * 2, dim=-1)[:, :n].clone()
"""


def test_zeros_behind_an_edge_show_where_only_sizes_beside_the_workloads_have_one(judge: Judge) -> None:
    """The recipe's values are so large that zeros hardly count beside them."""
    task = read_problem(SOFTMAX, "softmax")
    for _ in range(3):
        found = judge.judge(task, candidate(ZEROS_BEHIND_THE_EDGE), eager_only(judge, task))
        assert found.verdict in (Verdict.INCORRECT_VALUES, Verdict.NONDETERMINISTIC), found.reason
        assert found.evidence["workload"] in ("n=1023", "n=1025"), found.reason
