"""A Run from its creation to its end, step by step and drained whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.errors import Conflict
from db.queues import JobKind
from db.repositories import candidates, evaluations, events, leaderboard, proposals, roofline
from db.transitions.extend import extend_run
from db.transitions.work import settle
from db.views.work import ConfirmWork
from evaluator.types import Evaluation, Stage, Verdict, Workload, WorkloadFacts
from evolution.types import Budget, EndReason, ProposalOutcome, RunConfig, RunStatus
from tests.db.world import SAMPLES, World, admission, failed, from_list, passed

pytestmark = pytest.mark.both_stacks(soak=True)


def kinds(engine: Engine, run_id: str) -> list[str]:
    with read_session(engine) as s:
        found = events.after(s, run_id, 0, 10_000)
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    return [event.kind for event in found]


@pytest.mark.both_stacks
def test_a_run_finds_confirms_and_promotes(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.2", "INCORRECT_VALUES", "BUILD_ERROR", "speed=1.8"))
    run = world.start()
    assert run.status is RunStatus.QUEUED
    world.drain()
    run = world.run(run.id)
    assert (run.status, run.end_reason) == (RunStatus.FINISHED, EndReason.STAGNATED)
    assert "1.80x as fast" in run.message
    with read_session(engine) as s:
        best = candidates.get(s, run.champion_id or "")
        [row] = leaderboard.rows(s, "default")
        whole = evaluations.for_candidate(s, best.id)
    assert best.confirmed
    assert candidates_source_speed(engine, best.id) == "speed=1.8"
    assert row.candidate_id == best.id
    assert row.fastest_baseline == "compile"
    assert row.against_fastest.value == 1.8
    assert whole[0].measurements[0].samples_us == SAMPLES
    assert whole[0].measurements[0].baselines[0].samples_us == (40.0, 40.5)
    assert run.spend.candidates == 4
    told = kinds(engine, run.id)
    assert told[0] == "run.created"
    assert told[-1] == "run.ended"
    expected = {"problem.admitted", "baseline.timed", "proposal.opened", "candidate.created", "evaluation.settled"}
    assert expected <= set(told)


def candidates_source_speed(engine: Engine, candidate_id: str) -> str:
    with read_session(engine) as s:
        return candidates.source(s, candidate_id).source


def test_no_improvement_names_the_fastest_baseline(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=0.7", "speed=0.9"))
    run = world.start()
    world.drain()
    run = world.run(run.id)
    assert run.end_reason is EndReason.NO_IMPROVEMENT
    assert run.champion_id is None
    assert run.best_id is not None
    assert "compile (20.0 us on small)" in run.message
    assert "eager" not in run.message


def test_a_run_without_a_champion_says_which_rule_stopped_each(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.3", "speed=1.5"), promote=lambda work, speedup: False)
    run = world.start()
    world.drain()
    run = world.run(run.id)
    assert run.end_reason is EndReason.NO_IMPROVEMENT
    assert "Not promoted: #2, confirmed at 1.50x: it is slower on small at 0.840x." in run.message
    with read_session(engine) as s:
        told = [e.data for e in events.after(s, run.id, 0, 1000) if e.data.get("kind") == "confirm"]
    assert [(one["promoted"], one["confirmed"], one["why_not"]) for one in told][:1] == [
        (False, 1.5, ["it is slower on small at 0.840x"])
    ]


def test_a_kernel_that_fails_its_confirmation_is_named_with_its_verdict(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    world.confirm = lambda item: failed(world.problem, item.candidate, Verdict.NONDETERMINISTIC, Stage.CONFIRM)
    run = world.start()
    world.drain()
    assert "Not promoted: #1: NONDETERMINISTIC: " in world.run(run.id).message


def test_a_refused_problem_ends_the_run(engine: Engine) -> None:
    world = World(engine)
    run = world.start()
    job = world.take(JobKind.ADMIT)
    assert world.run(run.id).status is RunStatus.ADMITTING
    with write_session(engine) as s:
        settle.settle_admission(s, job, admission(world.problem, Verdict.INVALID_REFERENCE))
    run = world.run(run.id)
    assert (run.status, run.end_reason) == (RunStatus.FAILED, EndReason.PROBLEM_REFUSED)
    assert run.message == "zeros pass this reference"
    again = world.start()
    assert world.take(JobKind.ADMIT).run_id is None
    assert world.run(again.id).status is RunStatus.ADMITTING


def test_admission_and_baselines_are_made_once(engine: Engine) -> None:
    world = World(engine)
    first, second = world.start(), world.start()
    world.drain()
    third = world.start()
    world.drain()
    counted = [job.kind for job in world.done]
    assert counted.count(JobKind.ADMIT) == 1
    assert counted.count(JobKind.BASELINE) == 1
    assert all(world.run(run.id).status.ended for run in (first, second, third))


def test_a_run_without_a_proposer_says_so(engine: Engine) -> None:
    world = World(engine)
    run = world.start(config=RunConfig(proposers=()))
    world.drain()
    assert world.run(run.id).end_reason is EndReason.NO_PROPOSER
    run = world.start(config=RunConfig(in_flight=1))
    world.drain()
    assert world.run(run.id).message == "No proposer gave a candidate (synthesiser). The last answer: no more designs"


def test_a_machine_that_can_make_no_candidate_is_no_missing_proposer(engine: Engine) -> None:
    world = World(engine)
    run = world.start(config=RunConfig(in_flight=1))
    while (job := world.claim()) is not None:
        if job.kind != JobKind.PROPOSE:
            world.work(job)
            continue
        with write_session(engine) as s:
            settle.fail_job(s, job, "the cage does not start: bwrap is missing", ours=True)
    ended = world.run(run.id)
    assert (ended.status, ended.end_reason) == (RunStatus.FAILED, EndReason.INTERNAL_ERROR)
    assert ended.message.endswith("see `warpwright doctor`: the cage does not start: bwrap is missing")


def test_duplicates_cost_no_device_time(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5", "speed=1.5", "speed=1.5 # again"))
    run = world.start(config=RunConfig(in_flight=1))
    world.drain()
    assert [job.kind for job in world.done].count(JobKind.JUDGE) == 1
    with read_session(engine) as s:
        outcomes = [p.outcome for p in proposals.list(s, run.id)]
        assert len(candidates.list(s, run.id)) == 2
    assert outcomes.count(ProposalOutcome.DUPLICATE) == 2
    assert outcomes.count(ProposalOutcome.EXHAUSTED) == 1


def test_the_candidate_budget_is_never_exceeded(engine: Engine) -> None:
    world = World(engine, propose=lambda work: from_list(*(f"speed=0.{n}" for n in range(1, 99)))(work))
    run = world.start(budget=Budget(candidates=7), config=RunConfig(in_flight=5))
    world.drain()
    run = world.run(run.id)
    assert run.spend.candidates == 7
    with read_session(engine) as s:
        assert len(candidates.list(s, run.id)) == 7


def test_the_champion_of_an_earlier_run_is_a_seed_and_the_one_to_beat(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    first = world.start()
    world.drain()
    champion = world.run(first.id).champion_id
    world.propose = from_list("speed=1.2")
    second = world.start()
    world.drain()
    run = world.run(second.id)
    assert run.champion_id == champion
    assert "earlier run" in run.message
    assert [job.kind for job in world.done].count(JobKind.CONFIRM) == 1


def test_a_run_ends_at_the_roofline_of_its_device(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def near(evaluation: Evaluation, workloads: Sequence[Workload], facts: Sequence[WorkloadFacts]) -> float:
        assert evaluation.stage is Stage.CONFIRM
        seen.append((len(workloads), len(facts)))
        return 0.97

    monkeypatch.setattr(roofline, "attained", near)
    world = World(engine, propose=from_list("speed=2.0"))
    run = world.start()
    world.drain()
    found = world.run(run.id)
    assert found.end_reason is EndReason.ROOFLINE_REACHED
    assert "attains 97 % of the memory roofline" in found.message
    with write_session(engine) as s, pytest.raises(Conflict, match="another roofline_share"):
        extend_run(s, run.id, Budget(candidates=9))
    assert seen == [(1, 1)]


def test_target_reached(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=2.5", "speed=1.1"))
    run = world.start(config=RunConfig(target_speedup=2.0, in_flight=1))
    world.drain()
    assert world.run(run.id).end_reason is EndReason.TARGET_REACHED


def test_what_a_confirmation_found_is_shown_from_then_on(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.08"))

    def slower(item: ConfirmWork) -> Evaluation:
        return passed(world.problem, item.candidate, 0.86, stage=Stage.CONFIRM)

    world.confirm = slower  # type: ignore[method-assign]
    run = world.start(config=RunConfig(in_flight=1))
    world.drain()
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
        shown = [event.data for event in events.after(s, run.id, 0, 1000) if event.kind == "evaluation.settled"]
    assert candidate.speedup is not None
    assert (candidate.speedup.value, candidate.confirmed) == (0.86, False)
    assert shown[-1]["speedup"] == 0.86
    assert "The best candidate was 0.86x as fast" in world.run(run.id).message


def test_the_end_names_the_speedup_of_the_candidate_that_is_kept(engine: Engine) -> None:
    """A design's confirmed kernel stays its elite; a relative that was only judged may be the best of the Run."""
    design = 'CONFIG = {{"A": "speed={} "}}\nTUNABLES = {{"A": ["speed=1.6 ", "speed=1.48 "]}}\n'
    world = World(engine, propose=from_list(design.format("1.6"), design.format("1.48")))

    def slower(item: ConfirmWork) -> Evaluation:
        return passed(world.problem, item.candidate, 1.02, stage=Stage.CONFIRM)

    world.confirm = slower  # type: ignore[method-assign]
    run = world.start(config=RunConfig(in_flight=2), budget=Budget(candidates=2))
    world.drain()
    ended = world.run(run.id)
    with read_session(engine) as s:
        best = next(one for one in candidates.list(s, run.id) if one.id == ended.best_id)
    assert (best.number, best.elite) == (2, False)
    assert "The best candidate was 1.48x as fast" in ended.message
