"""Candidates that cheat: each gets its Verdict, leaves nothing behind, and an honest one after it is unharmed.

The files are in cheats/, one trick each; what a GPU alone can judge runs in tests/gpu/test_gpu_adversarial.py.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.cage import freezer
from evaluator.languages import adapter
from evaluator.schema import to_json
from evaluator.stages.judge import Judge
from evaluator.types import Language
from tests.adversarial import suite
from tests.adversarial.open_findings import OPEN

# After these an honest Candidate is judged at once: they attack what the next one needs.
HOSTILE = ("escapes", "forged results", "tampering", "baseline sabotage", "clock patching", "escape from the window")
CLASSES = 26

pytestmark = pytest.mark.timeout(600)  # a busy machine; a verdict takes a second on a free one


@pytest.fixture(scope="module")
def court(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[suite.Court]:
    with suite.Court(judge, tmp_path_factory.mktemp("cheats")) as one:
        one.assert_passes(honest().candidate, "rmsnorm")
        judge.session.pools.for_candidate(adapter(Language.TRITON))  # its fork server stays
        one.assert_clean()
        yield one


def honest() -> suite.Case:
    return next(case for case in suite.cases("honest") if case.name == "cpp_lanes")


CASES = suite.cases_for("cheats", "cpu")
MARKS = suite.parameters({case.name: case.kind for case in CASES}, OPEN)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name, marks=MARKS[case.name]) for case in CASES])
def test_a_cheat_gets_its_verdict(court: suite.Court, case: suite.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.name.startswith("cannot_be_stopped"):
        monkeypatch.setattr(freezer, "freeze", functools.partial(freezer.freeze, timeout_s=suite.FREEZE_S))
    found = court.try_case(case)
    if suite.TRUE_TIME in case.verdicts:
        found = court.true_time(case, found)
    suite.check(case, found)
    court.assert_clean()
    json.dumps(to_json(found), allow_nan=False).encode()
    if case.kind in HOSTILE and suite.after_hostile(case.name):
        court.assert_passes(honest().candidate, "rmsnorm")


def test_held_out_sizes_are_told_to_nobody(court: suite.Court) -> None:
    """Not even later, in an error on shown data."""
    case = next(case for case in suite.cases("cheats") if case.name == "leaks_held_out_sizes")
    found = court.try_case(case)
    assert "33" not in json.dumps([found.reason, to_json(found)["evidence"]])


def test_every_class_is_tried_often_enough() -> None:
    kinds = Counter(case.kind for case in suite.cases("cheats"))
    assert len(kinds) >= CLASSES, kinds
    assert sum(kinds.values()) >= 80


def test_every_file_answers_a_problem() -> None:
    known = {path.stem for path in (Path(__file__).parent / "problems").glob("*.py")}
    for folder in ("cheats", "honest"):
        assert {case.problem for case in suite.cases(folder)} <= known
    assert all(suite.problem(name).workloads for name in known)


def test_a_file_on_which_the_judge_is_wrong_is_left_to_soak() -> None:
    kinds = {"one": "stale memory", "other": "stale memory"}
    for name in kinds:
        marks = suite.parameters(kinds, {name: "it is not found yet"})
        assert [sorted(mark.name for mark in marks[each]) for each in kinds if each != name] == [[]]
        assert sorted(mark.name for mark in marks[name]) == ["soak", "xfail"]
