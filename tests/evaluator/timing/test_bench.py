"""The order of timed rounds, what the reference is asked for them, and what happens where first replays look wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from evaluator.devices.base import RoundPlan
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.oracle.oracle import Oracle
from evaluator.subject import Subject
from evaluator.timing.bench import Bench
from evaluator.timing.contender import Contender
from evaluator.timing.integrity import graph_replays
from evaluator.timing.protocol import STANDARD
from evaluator.timing.rounds import Rounds, bounded, ends_after
from evaluator.timing.verifier import Verifier, _Comparison
from evaluator.types import Stage, Verdict
from tests.evaluator.rooms import CPP, QUICK, candidate, eager_only, problem

RULES = replace(QUICK, closely=False)  # the rounds are looked at here, and not what integrity checks do beside them


@pytest.fixture(autouse=True)
def _rounds_alone(request, monkeypatch):
    if "judge" in request.fixturenames:
        judge = request.getfixturevalue("judge")
        monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=RULES))


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_suspected_of_skipping_work_it_is_timed_again(judge, monkeypatch, times):
    looks: list[int] = []

    def skipped(rounds: Rounds, contenders: list[Contender], *_how: object, racing: bool) -> Rejection | None:
        looks.append(len(contenders[0].all_samples()))
        if len(looks) <= times:
            return Rejection(Verdict.REWARD_HACK, Stage.TIMING, "work is skipped", check="first_replay")
        return None

    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=QUICK))
    monkeypatch.setattr(graph_replays, "skipped_work", skipped)
    task = problem()
    found = judge.judge(task, candidate(CPP), eager_only(judge, task))
    assert len(looks) == 2
    if times == 1:
        assert found.verdict is Verdict.PASSED, found.reason
        (measured,) = found.measurements
        assert measured.diagnostics["pairs"] == looks[1]
        assert len(measured.samples_us) == looks[1]  # nothing of the first time counts
    else:
        assert found.verdict is Verdict.REWARD_HACK
        assert found.evidence["check"] == "first_replay"


@pytest.mark.parametrize(
    ("slowest_us", "input_bytes", "calls"),
    [(20.0, 1 << 20, 32), (500.0, 1 << 20, 20), (5000.0, 1 << 20, 8), (20.0, 1 << 27, 16), (0.0, 0, 32)],
)
def test_first_replays_take_as_many_calls_as_noise_asks_for(slowest_us, input_bytes, calls):
    assert graph_replays._calls(8, slowest_us, input_bytes) == calls


class FirstReplays:
    """Stands for Rounds: every contender takes 10 us a call, and `over_us(name, place, number)` more in the `number`-th
    round that is looked at, where it runs in that `place` of it."""

    input_bytes = 1 << 20

    def __init__(self, over_us: Callable[[str, int, int], float]) -> None:
        self.ran: list[str] = []
        self._over_us = over_us
        self._number = 0

    def repeated_inputs(self, count: int) -> None:
        self._number = 0

    def drawable_calls(self, count: int) -> int:
        return count

    def drawn_inputs(self, count: int) -> None:
        self._number += 1
        self.ran.clear()

    def run(self, contender: Contender, calls: None, plan: RoundPlan) -> SimpleNamespace:
        self.ran.append(contender.name)
        return SimpleNamespace(wall_us=10.0 * plan.calls + self._over_us(contender.name, len(self.ran), self._number))


def looked_at(over_us: Callable[[str, int, int], float], *, racing: bool = False) -> Rejection | None:
    some = [
        Contender(name, cast("Subject", None), suspect=name == "candidate", buffers={}, samples={8: [10.0]})
        for name in ("candidate", "eager")
    ]
    rounds = cast("Rounds", FirstReplays(over_us))
    return graph_replays.skipped_work(rounds, some, RoundPlan(calls=8, replays=4), STANDARD.integrity, racing=racing)


def test_who_works_in_first_replays_alone_is_found():
    found = looked_at(lambda name, place, number: 900.0 if name == "candidate" else 0.0)
    assert found is not None
    assert found.evidence == {"check": "first_replay", "excess_us": 900.0, "calls": 32}
    assert looked_at(lambda name, place, number: 900.0 if name == "candidate" else 0.0, racing=True) is not None


@pytest.mark.parametrize("racing", [True, False])
@pytest.mark.parametrize(
    "over_us",
    [
        pytest.param(lambda name, place, number: 900.0 if place == 1 else 0.0, id="whoever runs first is slow"),
        pytest.param(lambda name, place, number: 900.0 if number < 6 else 0.0, id="a busy while"),
        pytest.param(lambda name, place, number: 900.0, id="everybody's are"),
        pytest.param(
            lambda name, place, number: 900.0 if name == "candidate" and number != 4 else 0.0, id="one good round"
        ),
    ],
)
def test_an_honest_kernel_is_not_taken_for_one_that_skips_work(over_us, racing):
    assert looked_at(over_us, racing=racing) is None


def test_every_size_of_round_has_both_orders(judge, monkeypatch):
    rules = replace(RULES, least_pairs=4, racing=False, rehearse=False)
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=rules))
    ran: list[tuple[str, int]] = []
    usual, pair = Rounds.run, Bench.pair

    def run(rounds, contender, inputs, plan, **how):
        ran.append((contender.name, plan.executions))
        return usual(rounds, contender, inputs, plan, **how)

    orders: list[tuple[tuple[str, ...], int]] = []

    def one_pair(bench: Bench) -> None:
        ran.clear()
        before = bench.pairs
        pair(bench)
        if bench.pairs > before:  # a disturbed pair is made again
            orders.append((tuple(name for name, _ in ran), ran[0][1]))

    monkeypatch.setattr(Rounds, "run", run)
    monkeypatch.setattr(Bench, "pair", one_pair)
    task = problem()
    found = judge.judge(task, candidate(CPP), eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, found.reason
    assert len(orders) == 4
    assert orders[0][0] == orders[1][0][::-1], "two pairs have both orders, too"
    sizes = {size for _, size in orders}
    assert set(orders) == {(names, n) for names in (("candidate", "eager"), ("eager", "candidate")) for n in sizes}


def test_questions_to_the_reference_together_are_answered_as_one_by_one(judge, monkeypatch):
    asked: list[int] = []
    usual = Subject.results

    def results(subject, tree, calls, **how):
        asked.append(len(calls))
        return usual(subject, tree, calls, **how)

    monkeypatch.setattr(Subject, "results", results)
    task = problem()
    with judge.session.references.lend(task) as reference:
        oracle = Oracle(task, reference, task.workloads[0].sizes, torch.Generator().manual_seed(1))
        made = [oracle.inputs() for _ in range(3)]
        tree, calls = made[0].tree, [one.tensors for one in made]
        like = oracle.expect(tree, calls[:1])[0]
        asked.clear()
        (odd,), usually = oracle.expect_strictly(tree, calls[:1], calls[1:])
        assert asked == [1, 3]  # as it is; lifted, with both others
        asked.clear()
        (alone,), others = oracle.expect(tree, calls[:1]), oracle.targets(tree, calls[1:], like)
        assert asked == [1, 2, 1, 2]
    assert torch.equal(odd.targets[0].oracle, alone.targets[0].oracle)
    assert torch.equal(odd.targets[0].reference, alone.targets[0].reference)
    assert odd.limits[0].norm <= alone.limits[0].norm
    assert odd.limits[0].element <= alone.limits[0].element
    for (_, (mine,)), theirs in zip(usually, others, strict=True):
        assert torch.equal(mine, theirs.targets[0].oracle)
        assert theirs.limits == like.limits


def test_what_the_strictest_limits_refuse_among_timed_calls_is_held_to_those_of_its_own_inputs(judge, monkeypatch):
    strictly, expect = Oracle.expect_strictly, _Comparison.expect
    widened: list[float] = []

    def nothing_allowed(oracle, tree, calls, others):
        odd, usual = strictly(oracle, tree, calls, others)
        return [one.with_slack(0.0) for one in odd], usual

    def seen(look, call, wanted):
        widened.append(wanted.limits[0].norm)
        return expect(look, call, wanted)

    monkeypatch.setattr(Oracle, "expect_strictly", nothing_allowed)
    monkeypatch.setattr(_Comparison, "expect", seen)
    task = problem()
    found = judge.judge(task, candidate(CPP), eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, found.reason
    assert widened
    assert min(widened) > 0


@pytest.mark.clock  # where a child waits for its core, its rounds are discarded, and more is rehearsed
def test_every_kind_of_adversarial_values_is_timed_or_rehearsed_and_none_is_rehearsed_that_is_timed(judge, monkeypatch):
    rules = replace(RULES, least_pairs=3, most_pairs=3, racing=False)
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=rules))
    compared: list[frozenset[str]] = []
    rehearsed: list[frozenset[str]] = []
    verify, rehearsals = Verifier.verify, Rounds.rehearsals

    def verified(verifier, *runs):
        compared.extend(run.inputs.kinds for run in runs if run.contender.compared_in_full)
        return verify(verifier, *runs)

    def seen(rounds, count, to_come, **least):
        for inputs in rehearsals(rounds, count, to_come, **least):
            rehearsed.append(inputs.kinds)
            yield inputs

    monkeypatch.setattr(Verifier, "verify", verified)
    monkeypatch.setattr(Rounds, "rehearsals", seen)
    task = problem()
    found = judge.judge(task, candidate(CPP), eager_only(judge, task))
    assert found.verdict is Verdict.PASSED, found.reason
    # The others cannot be compared where the chain mixes usual values into them, or are for more axes.
    able = [kind for kind in values.ADVERSARIAL if not (kind.only_finite_results or kind.nan_is_free)]
    every = {kind.name for kind in able if kind.least_axes <= 2}
    assert frozenset().union(*compared) == every
    alone = [kind for kinds in rehearsed for kind in kinds]
    assert len(alone) == len(set(alone)) < len(every)
    before = compared[: compared.index(rehearsed[0])]
    assert not set(alone) & frozenset().union(*before)


def test_rehearsals_end_where_nobody_can_tell():
    """Some of eight rehearsals expose a kernel that skips any fifth of the replays; any of four exposes
    one that skips the replays before the last of the shortest round so far."""
    draw, most, shortest = random.Random(3), 90, 12
    ends = [[ends_after(number, draw.random(), most=most, fewest=shortest) for _ in range(4000)] for number in range(8)]
    assert all({min(some), max(some)} == {1, most} for some in ends[1::2])
    assert all({min(some), max(some)} == {2, shortest - 1} for some in ends[::2])

    def missed(window: range) -> float:
        return math.prod(1 - sum(n in window for n in some) / len(some) for some in ends)

    assert missed(range(2, 18)) == 0
    assert missed(range(5, shortest)) < 0.05
    assert missed(range(2, 5)) < 0.2
    assert all(missed(range(first, first + 45)) < 0.15 for first in range(2, 45))


def test_a_very_slow_contender_is_given_few_replays_in_rounds_of_two_sizes():
    plan = RoundPlan(calls=11, replays=43)
    assert bounded(plan, 12.0) == bounded(plan, 2000.0) == plan
    assert bounded(plan, 4000.0).replays == 22
    assert [bounded(plan, 80_000.0, factor).replays for factor in (1.0, 1.6)] == [3, 5]
    assert bounded(replace(plan, replays=1), 80_000.0).replays == 1


def test_rehearsals_of_short_rounds_end_after_any_replay():
    for most, shortest in ((3, 2), (3, 3), (1, 1), (2, 2)):
        ends = {ends_after(n, share / 100, most=most, fewest=shortest) for n in range(8) for share in range(100)}
        assert ends == set(range(1, most + 1))


def test_rounds_are_verified_together_where_there_is_room_for_them(judge, monkeypatch):
    rules = replace(RULES, least_pairs=4, most_pairs=4, racing=False, rehearse=False)
    monkeypatch.setattr(judge, "protocol", replace(judge.protocol, judge=rules))
    together: list[int] = []
    verify = Verifier.verify

    def verified(verifier, *runs):
        together.append(len(runs))
        verify(verifier, *runs)

    monkeypatch.setattr(Verifier, "verify", verified)
    task = problem()
    found = {}
    for room in (0, 1 << 30):
        monkeypatch.setattr(judge.backend, "batch_bytes", room, raising=False)
        together.clear()
        one = judge.judge(task, candidate(CPP), eager_only(judge, task))
        assert one.verdict is Verdict.PASSED, one.reason
        found[room] = [count for count in together if count]
    assert set(found[0]) == {1}, "none is kept where there is no room for it"
    assert max(found[1 << 30]) >= 8, "four pairs of two"
    assert len(found[1 << 30]) < len(found[0])
