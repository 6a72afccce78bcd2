"""The rate compared with KernelBench: the order of files for each judge, and the computation of rates."""

from __future__ import annotations

import pytest

from bench.rate.bench import KERNELBENCH, OURS, summary
from bench.rate.files import File, files
from bench.rate.judges import Work, judge_all


def test_fifty_files_of_each_kind_a_third_of_them_wrong() -> None:
    plain, inline = files(), files(load_inline=True)
    assert len(plain) == len(inline) == 50
    assert sum(not one.right for one in plain) == sum(not one.right for one in inline) == 17
    same = {one.name for one in plain} & {one.name for one in inline}
    assert 40 < len(same) < 50, "what is built otherwise has a name of its own"
    by_name = {one.name: one for one in plain}
    assert all(by_name[one.name] == one for one in inline if one.name in same)


def test_a_judge_finishes_its_problem_then_begins_one_then_helps() -> None:
    some = [one for one in files() if one.problem in {f.problem for f in files()[:10]}]
    first, second = some[0].problem, some[5].problem
    work = Work(some[:5] + some[5:7])
    mine = work.next("")
    theirs = work.next("")
    assert (mine.problem, theirs.problem) == (first, second)
    assert work.next(second).problem == second
    helped = work.next(second)
    assert helped.problem == first, "nothing of its own is left"
    left = [work.next(first) for _ in range(4)]
    assert [one.problem for one in left[:3]] == [first] * 3
    assert left[3] is None


def test_rates_are_of_the_files_of_one_kind_and_number_of_judges() -> None:
    some = files()[:5]
    lines = [
        {"who": who, "file": one.name, "right": one.right, "passed": one.right, "wall_s": wall_s, **more}
        for one in some
        for who, wall_s, more in (
            (KERNELBENCH, 6.0, {}),
            (OURS, 1.0, {"judges": 1, "kind": "plain", "stages_s": {"build": 0.5}}),
            (OURS, 1.5, {"judges": 3, "kind": "plain", "stages_s": {"build": 0.5}}),
        )
    ]
    one, three = (summary("plain", n, some, lines, wall_s, {}) for n, wall_s in ((1, 5.0), (3, 2.5)))
    assert (one["files"], one["ratio"], three["ratio"]) == (5, 6.0, 12.0)
    assert one[OURS]["right_answers"] == one[KERNELBENCH]["right_answers"] == 5
    alone = summary("plain", 1, some, [e for e in lines if e["who"] == OURS], 5.0, {})
    assert "ratio" not in alone
    half = summary("plain", 1, some, [e for e in lines if e["file"] != some[0].name or e["who"] == OURS], 5.0, {})
    assert "ratio" not in half, "of files that both have judged alone"


_SMALL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 1


def get_inputs():
    return [torch.randn(64, 64)]
"""
_RIGHT = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * 2 + 1\n"


@pytest.mark.soak
@pytest.mark.judge
def test_two_judges_judge_files_together() -> None:
    right = File("right", _SMALL, _RIGHT, "torch", True, False)
    wrong = File("wrong", _SMALL, _RIGHT.replace("+ 1", "- 1"), "torch", False, False)
    noted = []
    wall_s = judge_all([right, wrong], "cpu", 2, lambda one, told: noted.append((one.name, told["passed"])))
    assert sorted(noted) == [("right", True), ("wrong", False)]
    assert wall_s > 0
