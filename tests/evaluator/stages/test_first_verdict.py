"""Baselines that compile on the judge's only core wait while a Problem's first right Candidate is judged."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.device_session.comparators import ComparatorCache
from evaluator.devices.cpu import CpuBackend
from evaluator.errors import CageError
from evaluator.problem import read_problem
from evaluator.stages.admit import admit
from evaluator.stages.judge import Judge
from evaluator.subject import Arguments
from evaluator.types import Verdict
from tests.evaluator.rooms import PROBLEM, candidate, eager_only, forward, problem


class Children:
    """Starts nothing, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.asked = 0
        self.was_asked = threading.Event()

    def start(self, *_: object, **__: object) -> None:
        self.asked += 1
        self.was_asked.set()
        raise CageError("no child")


@pytest.fixture
def children() -> Children:
    return Children()


def comparators(children: Children, cores: int) -> ComparatorCache:
    pools = SimpleNamespace(get=lambda *_, **__: None)
    return ComparatorCache(CpuBackend(1, set(range(cores))), pools, children)  # type: ignore[arg-type]


@pytest.fixture
def oracle() -> Any:
    return SimpleNamespace(init=Arguments(None, ()), inputs=lambda: Arguments(None, ()))


@pytest.mark.parametrize(("cores", "meanwhile"), [(2, 0), (3, 1)])
def test_nothing_compiles_on_the_judges_only_core(children: Children, oracle: Any, cores: int, meanwhile: int) -> None:
    task = problem()
    with closing(comparators(children, cores)) as cache:
        with cache.held_back():
            cache.prepare(task, task.workloads[0], ["compile"], oracle)
            cache.await_all(task, task.workloads, ["compile"], 10.0 * meanwhile)
            assert children.asked == meanwhile
        cache.await_all(task, task.workloads, ["compile"], 10.0)
        assert children.asked == 1


def test_what_is_asked_for_compiles_anyway(children: Children, oracle: Any) -> None:
    task = problem()
    with closing(comparators(children, 2)) as cache, cache.held_back(), pytest.raises(CageError, match="no child"):
        cache.get(task, task.workloads[0], "compile", oracle)


@pytest.mark.parametrize("wanted", ["a candidate was right", "somebody waits"])
def test_nothing_begins_there_before_it_is_wanted(children: Children, oracle: Any, wanted: str) -> None:
    task = problem()
    with closing(comparators(children, 2)) as cache:
        cache.hold()
        cache.prepare(task, task.workloads[0], ["compile"], oracle)
        cache.advance()
        assert children.asked == 0
        assert cache.is_begun(task, task.workloads[0], "compile"), "it needs no second preparation"
        if wanted == "somebody waits":
            cache.await_all(task, task.workloads, ["compile"], 10.0)
        else:
            cache.go_on()
        assert children.was_asked.wait(10.0)


def test_where_there_are_more_cores_nothing_is_held(children: Children, oracle: Any) -> None:
    task = problem()
    with closing(comparators(children, 3)) as cache:
        cache.hold()
        cache.prepare(task, task.workloads[0], ["compile"], oracle)
        assert children.was_asked.wait(10.0)


@pytest.mark.usefixtures("workloads_alone")
def test_baselines_wait_until_a_candidate_was_right(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """This judges one for real: only a Candidate that passes ends the wait."""
    task, held = read_problem(f"{PROBLEM}\n# of this test alone\n", "rmsnorm"), []

    def hold() -> AbstractContextManager[None]:
        held.append("held")
        return nullcontext()

    monkeypatch.setattr(judge.session.comparators, "held_back", hold)
    known = replace(eager_only(judge, task), pending=("compile",))
    refused, right = candidate("import os\n"), forward("return right(x, self.weight)")
    for one, verdict, times in (
        (refused, Verdict.INVALID_SUBMISSION, 1),
        (right, Verdict.PASSED, 2),
        (refused, Verdict.INVALID_SUBMISSION, 2),
    ):
        assert judge.judge(task, one, known).verdict is verdict
        assert len(held) == times


def test_admission_begins_to_compile_nothing_on_the_judges_only_core(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(judge, "compiles_ahead", True)
    monkeypatch.setattr(judge.session.comparators, "hold", lambda: done.append("hold"))
    monkeypatch.setattr(judge.session.comparators, "prepare", lambda *_: done.append("prepare"))
    assert admit(judge, problem()).accepted
    assert done[0] == "hold"
    assert set(done[1:]) == {"prepare"}
