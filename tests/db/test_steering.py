"""Steering a Run: extend, fork, seed, inject."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.errors import Conflict, NotFound
from db.queues import JobKind
from db.repositories import candidates, events, proposals
from db.tables.core import ProposalRow
from db.transitions import runs as run_writes
from db.transitions.extend import MOST_WALL_S, extend_run
from db.transitions.fork import fork_run
from db.transitions.inject import inject_candidate
from db.transitions.seeds import Heritage
from evaluator.types import Candidate, Language, Verdict
from evolution.types import Budget, EndReason, ProposalOutcome, Run, RunConfig, RunStatus
from tests.db.world import World, from_list, problem


def kernel(source: str, *parents: str) -> Candidate:
    return Candidate(source=source, language=Language.CPP, parents=parents)


def extend(engine: Engine, run: Run, more: Budget, target: float | None = None) -> Run:
    with write_session(engine) as s:
        return extend_run(s, run.id, more, target_speedup=target, project_id="default")[0]


def test_a_run_out_of_budget_goes_on_with_more(engine: Engine) -> None:
    world = World(engine, propose=from_list(*(f"speed=1.{n}" for n in range(1, 9))))
    run = world.start(Budget(candidates=3), RunConfig(in_flight=1))
    world.drain()
    first = world.run(run.id)
    assert (first.status, first.end_reason, first.spend.candidates) == (RunStatus.FINISHED, EndReason.BUDGET, 3)
    again = extend(engine, run, Budget(candidates=2, usd=5.0))
    assert (again.status, again.end_reason, again.ended_at) == (RunStatus.RUNNING, None, None)
    assert again.budget == Budget(candidates=5)
    world.drain()
    last = world.run(run.id)
    assert (last.status, last.end_reason, last.spend.candidates) == (RunStatus.FINISHED, EndReason.BUDGET, 5)
    assert (last.champion_id or "") > (first.champion_id or "")
    with read_session(engine) as s:
        told = [event.kind for event in events.after(s, run.id, 0, 1000)]
    assert told.count("run.ended") == 2
    assert told.count("run.extended") == 1


def test_a_stagnated_run_goes_on(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5", *(f"speed=0.{n}" for n in range(1, 60))))
    run = world.start(Budget(candidates=50), RunConfig(in_flight=1, stagnation_candidates=4))
    world.drain()
    first = world.run(run.id)
    assert first.end_reason is EndReason.STAGNATED
    extend(engine, run, Budget(candidates=1))
    world.drain()
    assert world.run(run.id).end_reason is EndReason.STAGNATED
    assert world.run(run.id).spend.candidates > first.spend.candidates


def test_an_extension_that_does_not_help_is_refused(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=0.5", "speed=0.6", "speed=0.7"))
    run = world.start(Budget(candidates=2), RunConfig(in_flight=1))
    world.drain()
    with pytest.raises(Conflict, match="and has used 2: add more candidates"):
        extend(engine, run, Budget(usd=1.0))
    with pytest.raises(NotFound), write_session(engine) as s:
        extend_run(s, run.id, Budget(candidates=1), project_id="other")
    other = world.start()
    with write_session(engine) as s:
        run_writes.cancel_run(s, other.id)
    with pytest.raises(Conflict, match="fork it"):
        extend(engine, other, Budget(candidates=1))


def test_a_live_run_is_extended_where_it_stands(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=0.5"))
    run = world.start(Budget(candidates=1, wall_s=60.0))
    assert extend(engine, run, Budget(wall_s=40.0)).budget.wall_s == 100.0
    job = world.take(JobKind.PROPOSE)
    later = datetime.now(UTC) + timedelta(seconds=90)
    with write_session(engine) as s:
        s.info["now"] = lambda: later
        assert run_writes.pause_run(s, run.id)[0].spend.wall_s == pytest.approx(90, abs=5)
        paused = extend_run(s, run.id, Budget(wall_s=20.0))[0]
        assert paused.status is RunStatus.PAUSED
        s.info["now"] = lambda: later + timedelta(hours=3)
        assert run_writes.resume_run(s, run.id)[0].spend.wall_s == pytest.approx(90, abs=5)
    world.work(job)
    world.drain()
    assert world.run(run.id).spend.candidates == 1


def test_the_time_of_all_extensions_is_bounded(engine: Engine) -> None:
    world = World(engine)
    run = world.start(Budget(wall_s=9e9))
    assert extend(engine, run, Budget(wall_s=1e9)).budget.wall_s == MOST_WALL_S
    world.take(JobKind.PROPOSE)
    with pytest.raises(Conflict, match="add less"):
        extend(engine, run, Budget(wall_s=1e9))


def test_time_after_the_end_is_not_charged(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=0.5", "speed=0.6"))
    run = world.start(Budget(candidates=1, wall_s=60.0))
    world.drain()
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(days=1)
        assert extend_run(s, run.id, Budget(candidates=1))[0].spend.wall_s < 30


def test_what_was_dropped_at_the_end_is_judged_after_an_extension(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(Budget(candidates=5, wall_s=60.0), RunConfig(in_flight=1))
    job = world.take(JobKind.BUILD)
    world.work(job)
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(seconds=61)
        from db.transitions.work import jobs

        jobs.sweep(s)
        advance_job = jobs.claim(s, ["control"], "w", 60.0)
        assert advance_job is not None
        from db.transitions.advance import advance

        advance(s, advance_job)
    assert world.run(run.id).end_reason is EndReason.BUDGET
    with read_session(engine) as s:
        assert [c.verdict for c in candidates.list(s, run.id)] == [None]
    extend(engine, run, Budget(wall_s=600.0))
    world.drain()
    with read_session(engine) as s:
        assert [c.verdict for c in candidates.list(s, run.id)] == [Verdict.PASSED]
    assert world.run(run.id).champion_id is not None


def test_a_reached_target_can_be_raised(engine: Engine) -> None:
    world = World(
        engine, propose=from_list("speed=2.5", "speed=1.1", "speed=1.2", "speed=1.3", "speed=1.4", "speed=3.5")
    )
    run = world.start(config=RunConfig(target_speedup=2.0, in_flight=1))
    world.drain()
    assert world.run(run.id).end_reason is EndReason.TARGET_REACHED
    with pytest.raises(Conflict, match="target_speedup above"):
        extend(engine, run, Budget(candidates=5))
    extend(engine, run, Budget(candidates=5), target=3.0)
    world.drain()
    assert "3.50x as fast" in world.run(run.id).message


@pytest.mark.parametrize("target", [0.0, -1.0, float("nan"), float("inf")])
def test_a_target_is_a_positive_number(target: float) -> None:
    with pytest.raises(ValueError, match="target_speedup"):
        RunConfig(target_speedup=target)


def test_a_fork_begins_with_what_the_parent_has(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.2", "speed=1.8", "speed=0.9 #include <omp.h>"))
    parent = world.start(Budget(candidates=3), RunConfig(in_flight=1, seed=7, seed_sources=("speed=0.4",)))
    world.drain()
    world.propose = from_list()
    with write_session(engine) as s:
        fork, _ = fork_run(s, parent.id, Budget(candidates=9), project_id="default")
    assert (fork.forked_from, fork.problem_id, fork.config.seed) == (parent.id, parent.problem_id, 7)
    assert fork.config.seed_sources == ()
    world.drain()
    with read_session(engine) as s:
        sources = {candidates.source(s, c.id).source for c in candidates.list(s, fork.id)}
        inherited = {candidates.source(s, id).source for id in fork.config.seed_candidates}
    assert sources == inherited
    assert "speed=1.8" in sources
    with write_session(engine) as s:
        small, _ = fork_run(s, parent.id, Budget(candidates=9), heritage=Heritage.CHAMPIONS)
        best = [candidates.source(s, id).source for id in small.config.seed_candidates]
    assert best[0] == "speed=1.8"


def test_nothing_to_fork_is_said(engine: Engine) -> None:
    world = World(engine)
    run = world.start()
    with write_session(engine) as s:
        with pytest.raises(Conflict, match="candidate that passed"):
            fork_run(s, run.id, Budget(candidates=1))
        with pytest.raises(NotFound):
            fork_run(s, run.id, Budget(candidates=1), project_id="other")


def test_seed_candidates_are_tried_first_and_checked(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.2"))
    first = world.start()
    world.drain()
    with read_session(engine) as s:
        [seed] = [c.id for c in candidates.list(s, first.id)]
    stranger = World(engine, problem=problem("another"))
    with pytest.raises(Conflict, match="another Problem"):
        stranger.start(config=RunConfig(seed_candidates=(seed,)))
    with pytest.raises(NotFound):
        world.start(config=RunConfig(seed_candidates=("cand_none",)))
    world.propose = from_list()
    second = world.start(Budget(candidates=2), RunConfig(seed_candidates=(seed,), seed_sources=("speed=0.9",)))
    world.drain()
    with read_session(engine) as s:
        made = [(c.proposer, candidates.source(s, c.id).source) for c in candidates.list(s, second.id)]
    assert made == [("seed", "speed=1.2"), ("seed", "speed=0.9")]


def test_an_injected_candidate_is_judged_and_may_win(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.2", "speed=0.8"))
    run = world.start(Budget(candidates=9), RunConfig(in_flight=1))
    job = world.take(JobKind.PROPOSE)
    with write_session(engine) as s:
        proposal, nudges = inject_candidate(s, run.id, kernel("speed=3.0"), by="ada", project_id="default")
    assert nudges
    assert (proposal.outcome, proposal.arm.proposer) == (ProposalOutcome.CANDIDATE, "external:ada")
    world.work(job)
    world.drain()
    assert world.run(run.id).champion_id == proposal.candidate_id
    assert world.run(run.id).spend.candidates == 3


def test_an_injected_child_names_its_parent_and_a_twin_is_free(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.2", "speed=0.8"))
    run = world.start(Budget(candidates=9), RunConfig(in_flight=1))
    world.work(world.take(JobKind.BUILD))
    with write_session(engine) as s:
        [parent] = [c.id for c in candidates.list(s, run.id)]
        child, _ = inject_candidate(s, run.id, kernel("speed=2.0", parent))
        spent = world_spend(s, run.id)
        twin, _ = inject_candidate(s, run.id, kernel("speed=2.0"))
        assert world_spend(s, run.id) == spent
        with pytest.raises(NotFound):
            inject_candidate(s, run.id, kernel("speed=2.1", "cand_none"))
        assert proposals.get(s, child.id).parents == (parent,)
    assert (twin.outcome, twin.candidate_id) == (ProposalOutcome.DUPLICATE, child.candidate_id)
    world.drain()
    assert world.run(run.id).champion_id == child.candidate_id


def world_spend(s: object, run_id: str) -> int:
    from sqlalchemy.orm import Session

    from db.repositories import runs

    assert isinstance(s, Session)
    return runs.get(s, run_id).spend.candidates


def test_an_injection_waits_with_a_paused_run_and_needs_a_live_one(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=0.5"))
    run = world.start(Budget(candidates=2), RunConfig(in_flight=1))
    with write_session(engine) as s, pytest.raises(Conflict, match="queued"):
        inject_candidate(s, run.id, kernel("speed=2.0"))
    job = world.take(JobKind.PROPOSE)
    world.work(world.take(JobKind.BASELINE))
    with write_session(engine) as s:
        run_writes.pause_run(s, run.id)
        assert inject_candidate(s, run.id, kernel("speed=2.0"))[1] == []
        with pytest.raises(Conflict, match="extend it"):
            inject_candidate(s, run.id, kernel("speed=2.5"))
    world.work(job)
    assert world.claim() is None
    with write_session(engine) as s:
        run_writes.resume_run(s, run.id)
    world.drain()
    assert world.run(run.id).champion_id is not None
    with write_session(engine) as s, pytest.raises(Conflict, match="finished"):
        inject_candidate(s, run.id, kernel("speed=9.0"))


def test_a_number_of_proposals_is_never_doubled(engine: Engine) -> None:
    """Injections and the search share the numbering of a Run's Proposals."""
    world = World(engine, propose=from_list(*(f"speed=0.{n}" for n in range(1, 9))))
    run = world.start(Budget(candidates=12), RunConfig(in_flight=2))
    for n in range(4):
        job = world.take(JobKind.PROPOSE)
        with write_session(engine) as s:
            inject_candidate(s, run.id, kernel(f"speed=0.77 # {'i' * (n + 1)}"))
        world.work(job)
    world.drain()
    with read_session(engine) as s:
        numbers = sorted(s.query(ProposalRow.number).filter(ProposalRow.run_id == run.id))
    assert [n for (n,) in numbers] == list(range(len(numbers)))


def test_a_candidate_is_stored_with_line_feeds(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.2"))
    run = world.start(Budget(candidates=9), RunConfig(in_flight=1))
    world.take(JobKind.PROPOSE)
    with write_session(engine) as s:
        first, _ = inject_candidate(s, run.id, kernel("\ufeffspeed=3.0\r\na\rb\n"))
        twin, _ = inject_candidate(s, run.id, kernel("speed=3.0\na\nb\n"))
    assert first.candidate_id is not None
    assert (twin.outcome, twin.candidate_id) == (ProposalOutcome.DUPLICATE, first.candidate_id)
    with read_session(engine) as s:
        assert candidates.source(s, first.candidate_id).source == "speed=3.0\na\nb\n"
