"""Baselines compile beside other work, and what is clearly slower ends after a look."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from evaluator.device_session import compiling
from evaluator.errors import CageError
from evaluator.inputs.sizes import sizes_to_check
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.stages.baseline import baseline_so_far
from evaluator.stages.judge import Judge
from evaluator.stages.trial import secret_generator
from evaluator.timing.bench import Bench
from evaluator.timing.protocol import Rules
from evaluator.types import BaselineReport, Problem, Verdict
from tests.evaluator.rooms import CPP, candidate, eager_only, forward, problem

# Its only operation is one of a library: nothing is generated, which takes a compiler four times as long.
COMPILES_SOON = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.mm(x, x.t())


def get_inputs(rows=48, hidden=256):
    return [torch.randn(rows, hidden)]
"""
NEVER, ALWAYS = 0.0, sys.float_info.max
SLOW = ("for _ in range(20): y = right(x, self.weight)", "return y")


@contextmanager
def ending(judge: Judge, one: Problem) -> Iterator[Problem]:
    """A Problem whose children end with the test."""
    try:
        yield one
    finally:
        judge.session.forget(one)


@pytest.fixture
def long_look(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a look take more pairs, and go on until it has decided: other tests disturb some of them."""
    longer = replace(judge.protocol.look, least_pairs=6, most_pairs=16)
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, look=longer))


@contextmanager
def looking(judge: Judge, **ratios: float) -> Iterator[None]:
    """Let a look decide by other ratios: by chosen ones a stall of the machine changes nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "protocol", replace(judge.protocol, **ratios))  # type: ignore[arg-type]
        yield


def until_whole(judge: Judge, one: Problem, report: BaselineReport) -> BaselineReport:
    for _ in range(400):
        report = baseline_so_far(judge, one, report, patient=True)
        if not report.pending:
            return report
    raise AssertionError("it compiles for ever")


@pytest.mark.usefixtures("workloads_alone")
def test_the_first_report_has_eager_and_a_later_one_what_compiled(judge: Judge) -> None:
    product = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.mm(x, x.t())\n"
    with ending(judge, read_problem(COMPILES_SOON, "product")) as one:
        first = baseline_so_far(judge, one, None)
        assert ({t.mode for t in first.times}, first.pending) == ({"eager"}, ("compile",))
        found = judge.judge(one, candidate(product), first)
        assert found.verdict is Verdict.PASSED
        assert "so far (compile still compiling)" in found.reason
        whole = until_whole(judge, one, first)
    assert {t.mode for t in whole.times} == {"eager", "compile"}
    assert whole.skipped == {}
    brief, full = judge.protocol.baseline_so_far, judge.protocol.baseline
    assert all(brief.least_pairs <= len(t.samples_us) <= brief.most_pairs for t in first.times)
    assert all(full.least_pairs <= len(t.samples_us) for t in whole.times), "timed anew together, and for longer"


def test_a_mode_that_fails_is_skipped_with_its_reason(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "COMPILE_S", 0.05)
    with ending(judge, problem()) as one:
        whole = until_whole(judge, one, baseline_so_far(judge, one, None))
    assert {t.mode for t in whole.times} == {"eager"}
    assert "run" in whole.skipped["compile"]
    assert "0.05" in whole.skipped["compile"]


def test_a_child_that_compiles_stops_while_others_are_timed(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where compilers run kernels. The pause does not count against its limit. What it made is told."""
    compiler = judge.session.comparators._compiler
    monkeypatch.setattr(judge.session.comparators, "paused", compiler.paused)
    with ending(judge, problem()) as one, judge.session.references.lend(one) as reference:
        (workload, _) = one.workloads
        oracle = Oracle(one, reference, workload.sizes, secret_generator())
        judge.session.comparators.prepare(one, workload, ["compile"], oracle)
        (running,) = compiler._running.values()
        with judge.session.exclusive():
            assert running._subject is None, "a child that starts is asked for nothing, which would use the device"
        while running._subject is None:
            running.await_change(10.0)
            compiler.advance()
        with judge.session.exclusive():
            subject = running._subject
            assert subject is not None
            assert not subject.child.runs
            with judge.session.comparators.paused():  # one more reason to stand still
                pass
            assert not subject.child.runs
        assert subject.child.runs
        assert judge.session.comparators.get(one, workload, "compile", oracle) is subject
        code = subject.generated()
        assert 'extern "C"' in code
        assert "call(" in code


def test_who_waits_for_compilers_shares_the_device_and_lets_others_time(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilers run kernels, which would disturb another judge's timing."""
    session, held = judge.session, list[bool]()
    with ending(judge, read_problem(COMPILES_SOON, "product")) as one, session.references.lend(one) as reference:
        (workload,) = one.workloads
        oracle = Oracle(one, reference, workload.sizes, secret_generator())
        session.comparators.prepare(one, workload, ["compile"], oracle)
        monkeypatch.setattr(session.sharing, "yield_to_waiters", lambda: held.append(session.sharing._sharing))
        session.await_compiled(one, [workload], ["compile"], 120.0)
        assert session.comparators.is_ready(one, workload, "compile")
    assert True in held


def test_cases_are_prepared_ahead_once(judge: Judge) -> None:
    with ending(judge, problem()) as one:
        judge.check_stage.forget_cases()
        steps = 0
        while judge.check_stage.prepare_ahead(one):
            steps += 1
        assert steps > 1
        assert (one.hash, "small") in judge.check_stage.cases
        assert (one.hash, "odd") not in judge.check_stage.cases  # held out
        assert (one.hash, "small") in judge.check_stage.second_cases
        varied = [sizes.label for sizes in sizes_to_check(one, one.workloads) if not sizes.adversarial]
        assert varied
        assert not any((one.hash, label) in judge.check_stage.second_cases for label in varied), "Workloads alone"
        found = judge.judge(one, forward("return right(x, self.weight)"), eager_only(judge, one))
    assert found.verdict is Verdict.PASSED
    assert not judge.check_stage.prepare_ahead(one)


@pytest.mark.clock
@pytest.mark.usefixtures("long_look")
def test_what_is_clearly_slower_ends_after_a_look(judge: Judge) -> None:
    one = problem()
    early = replace(eager_only(judge, one), pending=("compile",))
    found = judge.judge(one, forward(*SLOW), early, quick=True)
    assert found.verdict is Verdict.PASSED
    ratio = found.speedup("fastest")
    assert ratio is not None
    assert ratio.interval.high < judge.protocol.clearly_slower
    assert found.reason == (
        f"right on {sum(found.evidence['correctness']['checked_calls'].values())} checks, slower:"
        f" {ratio.value:.2f}x the fastest baseline so far (compile still compiling)"
    )
    assert list(found.evidence["correctness"]["checked_calls"]) == ["small"]


@pytest.mark.clock
@pytest.mark.usefixtures("long_look")
def test_what_is_clearly_slower_than_the_best_so_far_ends_after_a_look(judge: Judge) -> None:
    one = problem()
    baseline = eager_only(judge, one)
    best = {workload.name: 1000.0 for workload in one.workloads}
    found = judge.judge(one, forward("return right(x, self.weight)"), baseline, quick=True, best=best)
    assert found.verdict is Verdict.PASSED
    assert found.evidence.get("look"), found
    assert found.reason.endswith("the fastest baseline; the best so far has 1000.00x")


@pytest.mark.clock
@pytest.mark.usefixtures("long_look")
def test_a_best_that_is_slower_than_the_baseline_is_told_as_it_is(judge: Judge) -> None:
    one = problem()
    best = {workload.name: 0.77 for workload in one.workloads}
    found = judge.judge(one, forward(*SLOW), eager_only(judge, one), quick=True, best=best)
    assert found.evidence.get("look"), found
    assert found.reason.endswith("the fastest baseline; the best so far has 0.77x")


@pytest.mark.usefixtures("workloads_alone")
def test_what_is_faster_on_one_workload_is_no_candidate_for_a_short_look(judge: Judge) -> None:
    one = problem()
    shown = next(workload for workload in one.workloads if not workload.held_out)
    one = replace(one, workloads=(*one.workloads, replace(shown, name="again")))
    best, baseline = {shown.name: 1000.0, "again": 0.01}, eager_only(judge, one)
    with looking(judge, seems_faster=0.1):  # of 1000 and of 1: neither is near
        found = judge.judge(one, candidate(CPP), baseline, quick=True, best=best)
    assert found.verdict is Verdict.PASSED
    assert "look" not in found.evidence


def test_what_is_not_slower_goes_through_everything(judge: Judge) -> None:
    one = problem()
    wrong_at_few_rows = forward("y = right(x, self.weight)", "return y if x.shape[0] > 1 else y * 2")
    with looking(judge, clearly_slower=NEVER):
        found = judge.judge(one, wrong_at_few_rows, eager_only(judge, one), quick=True)
    assert found.verdict is Verdict.INCORRECT_VALUES


@pytest.mark.usefixtures("workloads_alone")
def test_a_quick_judgement_looks_closely_at_one_workload(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen = Bench.run, list[tuple[bool, bool]]()

    def noted(self: Bench, rules: Rules, *more: Any) -> Mapping[str, int]:
        seen.append((rules.closely, rules.rehearse))
        return run(self, replace(rules, closely=False, rehearse=False), *more)  # tests/evaluator/timing look

    monkeypatch.setattr(Bench, "run", noted)
    one = problem()
    shown = [workload for workload in one.workloads if not workload.held_out]
    one = replace(one, workloads=(*one.workloads, replace(shown[0], name="again"), replace(shown[0], name="more")))
    baseline = eager_only(judge, one)
    every = replace(judge.protocol, judge=replace(judge.protocol.judge, closely=True, rehearse=True))
    monkeypatch.setattr(judge, "protocol", every)
    for quick, looks in ((True, 1), (False, 3)):
        seen.clear()
        found = judge.judge(one, forward("return right(x, self.weight)"), baseline, quick=quick)
        assert found.verdict is Verdict.PASSED
        assert sorted(seen) == [(False, False)] * (3 - looks) + [(True, True)] * looks


def test_a_quick_judgement_calls_one_module_with_several_sizes_after_the_look(judge: Judge) -> None:
    keeps_sizes = forward(
        "self.rows = getattr(self, 'rows', len(x))", "return right(x, self.weight) * (len(x) == self.rows)"
    )
    one = problem()
    shown = next(workload for workload in one.workloads if not workload.held_out)
    one = replace(one, workloads=(*one.workloads, replace(shown, name="again")))
    baseline = eager_only(judge, one)
    with looking(judge, clearly_slower=NEVER):
        assert judge.judge(one, keeps_sizes, baseline, quick=True).verdict is Verdict.INCORRECT_VALUES
    with looking(judge, clearly_slower=ALWAYS, seems_faster=ALWAYS):
        assert judge.judge(one, keeps_sizes, baseline, quick=True).reason.startswith("right on")


def test_a_quick_judgement_refuses_what_is_wrong_at_first_sight(judge: Judge) -> None:
    one = problem()
    found = judge.judge(one, forward(SLOW[0], "return y * 1.01"), eager_only(judge, one), quick=True)
    assert found.verdict is Verdict.INCORRECT_VALUES


def test_a_compiled_child_that_cannot_be_moved_is_not_timed(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise CageError("a compiled baseline cannot be moved to core 1: Operation not permitted")

    monkeypatch.setattr(judge.backend, "place", fail)
    with ending(judge, read_problem(COMPILES_SOON, "product")) as one:
        whole = until_whole(judge, one, baseline_so_far(judge, one, None))
    assert "cannot be moved" in whole.skipped["compile"]
