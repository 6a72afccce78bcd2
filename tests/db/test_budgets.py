"""Budgets are hard: checked before anything is spent, together with what is in flight."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories import candidates, events, proposals
from db.repositories.access import projects
from db.tables.core import ProposalRow, RunRow
from db.transitions import runs as run_writes
from db.transitions.extend import extend_run
from db.transitions.reservations import reserve
from db.transitions.work import jobs, settle
from db.views.rows import Job
from db.views.work import Call, ProposalResult, ProposeWork
from evolution.types import Budget, EndReason, Fault, ProposalOutcome, RunConfig, RunStatus
from tests.db.world import World, candidate_result, from_list, problem

pytestmark = pytest.mark.both_stacks(soak=True)

CALL = Call(input_tokens=1000, output_tokens=4000, least_output_tokens=256, usd_per_input=1e-6, usd_per_output=1e-5)
MODEL = RunConfig(proposers=("model",), in_flight=3, islands=1)
BROKE = ProposalResult(outcome=ProposalOutcome.OUT_OF_BUDGET, detail="too little is left")


def ask(engine: Engine, job: Job, call: Call = CALL) -> int:
    with write_session(engine) as s:
        return reserve(s, job, call)


def settle_with(engine: Engine, job: Job, tokens: int) -> None:
    with write_session(engine) as s:
        settle.settle_proposal(s, job, candidate_result(f"speed=0.{tokens}", output_tokens=tokens, usd=tokens * 1e-5))


def three_asked(world: World, budget: Budget) -> tuple[str, list[Job]]:
    run = world.start(budget, MODEL)
    first = world.take(JobKind.PROPOSE)
    more = [world.claim("propose"), world.claim("propose")]
    return run.id, [first, *(job for job in more if job is not None)]


@pytest.mark.both_stacks
def test_calls_in_flight_cannot_pass_a_token_budget_together(engine: Engine) -> None:
    world = World(engine)
    run_id, asked = three_asked(world, Budget(tokens=8000))
    assert [ask(engine, job) for job in asked] == [4000, 2000, 0]
    settle_with(engine, asked[0], 500)
    assert ask(engine, asked[2]) == 3500
    settle_with(engine, asked[1], 3000)
    settle_with(engine, asked[2], 4500)
    assert world.run(run_id).spend.tokens == 8000


def test_calls_in_flight_cannot_pass_a_dollar_budget_together(engine: Engine) -> None:
    world = World(engine)
    _, asked = three_asked(world, Budget(usd=0.05))
    assert [ask(engine, job) for job in asked] == [4000, 800, 0]
    settle_with(engine, asked[0], 1000)
    left = 0.05 - 0.01 - 0.009
    assert ask(engine, asked[2]) == int((left - 0.001) / 1e-5)


@pytest.mark.parametrize(
    ("tokens", "first", "then"),
    [
        pytest.param(12_000, 4000, [4000, 4000], id="room: the endpoint's limit"),
        pytest.param(6000, 4000, [1600, 1600], id="short: half each of what is left"),
        pytest.param(3000, 2000, [1000, 0], id="shorter: a usual reply, or none"),
    ],
)
def test_a_short_budget_is_shared_by_what_replies_really_take(
    engine: Engine, tokens: int, first: int, then: list[int]
) -> None:
    world = World(engine)
    _, asked = three_asked(world, Budget(tokens=tokens))
    assert ask(engine, asked[0]) == first
    settle_with(engine, asked[0], 800)
    assert [ask(engine, job) for job in asked[1:]] == then


def test_what_a_model_answers_in_vain_counts_against_a_budget_of_candidates(engine: Engine) -> None:
    bad = ProposalResult(outcome=ProposalOutcome.MALFORMED, detail="prose", fault=Fault.NO_CODE, output_tokens=9)
    answers = [candidate_result("speed=0.5", output_tokens=9), bad, candidate_result("speed=0.5", output_tokens=9)]
    answers += [candidate_result(f"speed=0.{n}7", output_tokens=9) for n in range(1, 9)]
    world = World(engine, propose=lambda work: answers[work.number])
    run = world.start(Budget(candidates=5), RunConfig(proposers=("model",), in_flight=1))
    world.drain()
    with read_session(engine) as s:
        outcomes = [one.outcome for one in proposals.list(s, run.id)]
    assert world.run(run.id).spend.candidates == len(outcomes) == 5
    assert outcomes.count(ProposalOutcome.CANDIDATE) == 3


def stopped(world: World, run_id: str) -> list[Any]:
    with read_session(world.engine) as s:
        return [one.data for one in events.after(s, run_id, 0, 1000) if one.kind == "proposer.stopped"]


def test_the_same_fault_twice_in_a_row_stops_the_model_with_its_words(engine: Engine) -> None:
    thought = ProposalResult(
        outcome=ProposalOutcome.MALFORMED, detail="it only thought", fault=Fault.THOUGHTS_ONLY, output_tokens=9
    )
    good = [candidate_result(f"speed=0.{n}5", output_tokens=9) for n in range(1, 9)]
    answers = [thought, good[0], thought, good[1], thought, thought, *good]
    world = World(engine, propose=lambda work: answers[work.number])
    run = world.start(Budget(candidates=30), RunConfig(proposers=("model",), in_flight=1, stagnation_candidates=99))
    world.drain()
    ended = world.run(run.id)
    with read_session(engine) as s:
        assert len(proposals.list(s, run.id)) == 6
    assert [(one["proposer"], one["operator"], one["detail"]) for one in stopped(world, run.id)] == [
        ("model", None, "it only thought")
    ]
    assert "model was stopped: it only thought" in ended.message


def test_a_fault_of_one_way_of_asking_stops_that_one_alone(engine: Engine) -> None:
    bad = ProposalResult(
        outcome=ProposalOutcome.MALFORMED, detail="no such line", fault=Fault.BAD_EDITS, output_tokens=9
    )

    def answer(work: ProposeWork) -> ProposalResult:
        return bad if work.arm.operator == "diff" else candidate_result(f"speed=0.{work.number + 10}", output_tokens=9)

    world = World(engine, propose=answer)
    run = world.start(Budget(candidates=14), RunConfig(proposers=("model",), in_flight=1, stagnation_candidates=99))
    world.drain()
    assert [(one["operator"], one["fault"]) for one in stopped(world, run.id)] == [("diff", "bad_edits")]
    assert world.run(run.id).spend.candidates == 14


def test_a_second_call_of_a_proposal_adds_to_its_first(engine: Engine) -> None:
    world = World(engine)
    _, asked = three_asked(world, Budget(tokens=8000))
    assert ask(engine, asked[0]) == 4000
    again = Call(input_tokens=1500, output_tokens=4000, least_output_tokens=256, spent_tokens=2500)
    assert ask(engine, asked[0], again) == 4000
    with read_session(engine) as s:
        assert s.get_one(ProposalRow, asked[0].subject_id).held_tokens == 8000
    assert ask(engine, asked[1]) == 0


@pytest.mark.parametrize("how", ["its worker dies", "the step fails"])
def test_a_call_whose_answer_was_lost_counts_as_spent(engine: Engine, how: str) -> None:
    """A request that was sent may be paid for: three tries of one Proposal cannot pay thrice what the budget has."""
    world = World(engine)
    run = world.start(Budget(usd=0.1, candidates=9), RunConfig(proposers=("model",), in_flight=1))
    granted = []
    for _ in range(3):
        job = world.take(JobKind.PROPOSE)
        granted.append(ask(engine, job))
        with write_session(engine) as s:
            if how == "the step fails":
                settle.fail_job(s, job, "no disk", ours=True)
            else:
                s.info["now"] = lambda: datetime.now(UTC) + timedelta(hours=1)
                jobs.sweep(s)
    assert granted == [4000, 4000, 1700]
    spent, most = world.run(run.id).spend, 3 * 1000 * 1e-6 + sum(granted) * 1e-5
    assert (spent.usd, spent.tokens) == (pytest.approx(most), 3 * 1000 + sum(granted))
    with read_session(engine) as s:
        [proposal] = proposals.list(s, run.id)
        assert (proposal.outcome, proposal.usd) == (ProposalOutcome.ENDPOINT_ERROR, pytest.approx(most))
        assert s.get_one(ProposalRow, proposal.id).held_usd == 0
        assert projects.usage(s, "default").usd == pytest.approx(most)


def test_what_is_answered_at_last_adds_to_what_was_lost(engine: Engine) -> None:
    world = World(engine)
    run = world.start(Budget(usd=0.1), RunConfig(proposers=("model",), in_flight=1))
    job = world.take(JobKind.PROPOSE)
    ask(engine, job)
    with write_session(engine) as s:
        settle.fail_job(s, job, "no disk", ours=True)
    settle_with(engine, world.take(JobKind.PROPOSE), 1000)
    with read_session(engine) as s:
        assert [one.usd for one in proposals.list(s, run.id)] == [pytest.approx(0.041 + 0.01)]
    assert world.run(run.id).spend.usd == pytest.approx(0.041 + 0.01)


def test_nothing_is_granted_to_a_lost_claim_or_an_ended_run(engine: Engine) -> None:
    world = World(engine)
    run_id, asked = three_asked(world, Budget(tokens=80_000, wall_s=100.0))
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(seconds=101)
        assert reserve(s, asked[0], CALL) == 0
    settle_with(engine, asked[0], 10)
    assert ask(engine, asked[0]) == 0
    with write_session(engine) as s:
        run_writes.cancel_run(s, run_id)
    assert ask(engine, asked[1]) == 0


def test_a_run_that_cannot_pay_ends_by_its_budget_and_goes_on_with_more(engine: Engine) -> None:
    world = World(engine, propose=lambda work: BROKE)
    run = world.start(Budget(tokens=100, candidates=20), MODEL)
    world.drain()
    ended = world.run(run.id)
    assert (ended.end_reason, ended.spend.candidates) == (EndReason.BUDGET, 0)
    assert "model calls" in ended.message
    with read_session(engine) as s:
        assert len(proposals.list(s, run.id)) <= 8
    world.propose = lambda work: candidate_result(f"speed=0.{work.number}1", output_tokens=10)
    with write_session(engine) as s:
        extend_run(s, run.id, Budget(tokens=30))
    world.drain()
    assert 0 < world.run(run.id).spend.candidates < 20


def test_only_new_candidates_count_against_a_budget_of_candidates(engine: Engine) -> None:
    bad = ProposalResult(outcome=ProposalOutcome.MALFORMED, detail="prose")
    answers = [candidate_result("speed=0.5"), bad, candidate_result("speed=0.5"), candidate_result("speed=0.5 # twin")]
    answers += [candidate_result(f"speed=0.{n}7") for n in range(1, 9)]
    world = World(engine, propose=lambda work: answers[work.number])
    run = world.start(Budget(candidates=4), RunConfig(in_flight=1))
    world.drain()
    assert world.run(run.id).spend.candidates == 4
    with read_session(engine) as s:
        judged = [c for c in candidates.list(s, run.id) if c.verdict is not None]
        assert len(judged) == 4
        assert len(proposals.list(s, run.id)) == 7


@pytest.mark.both_stacks
def test_judgements_that_wait_while_device_time_runs_out_are_not_begun(engine: Engine) -> None:
    world = World(engine, propose=from_list(*(f"speed=0.{n}" for n in range(1, 12))))
    run = world.start(Budget(device_s=2.0), RunConfig(in_flight=8))
    world.drain()
    with write_session(engine) as s:
        jobs.sweep(s)
    world.drain()
    ended = world.run(run.id)
    assert ended.status is RunStatus.FINISHED
    assert ended.spend.device_s == 2.0
    assert [job.kind for job in world.done].count(JobKind.JUDGE) == 2


def test_the_best_is_confirmed_even_where_its_judgement_ended_too_late(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(Budget(wall_s=100.0), RunConfig(in_flight=1))
    judging = world.take(JobKind.JUDGE)
    with write_session(engine) as s:
        row = s.get_one(RunRow, run.id)
        assert row.started_at is not None
        row.started_at -= timedelta(seconds=200)
    world.work(judging)
    world.drain()
    ended = world.run(run.id)
    assert ended.end_reason is EndReason.BUDGET
    assert ended.champion_id is not None
    assert [job.kind for job in world.done].count(JobKind.CONFIRM) == 1


def statements(engine: Engine) -> list[str]:
    """Record the statements that are sent to the database from now on."""
    sent: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def note(_c: Any, _u: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    return sent


@pytest.mark.parametrize("engine", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_the_sweeper_locks_problems_before_runs(engine: Engine) -> None:
    """A confirmation that is given up needs both, and its settlement takes them in this order."""
    for n in (1, 2):
        world = World(engine, propose=from_list("speed=1.5"), problem=problem(str(n)))
        world.start(config=RunConfig(in_flight=1))
        world.take(JobKind.CONFIRM)
    sent = statements(engine)
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(hours=1)
        jobs.sweep(s)
    locks = [text for text in sent if "FOR NO KEY UPDATE" in text]
    order = ["jobs" if "FROM jobs" in t else "problems" if "FROM problems" in t else "runs" for t in locks]
    assert order[:2] == ["problems", "runs"]
