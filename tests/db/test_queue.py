"""Claims, leases, sweeps and fairness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, select

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories import candidates, events, proposals
from db.repositories.work import jobs as job_reads
from db.tables.core import CandidateRow, EvaluationRow, Project
from db.tables.queue import JobRow
from db.transitions.advance import advance
from db.transitions.work import jobs, settle
from db.views.rows import Job
from evaluator.types import BuildReport, DeviceKind, Verdict
from evolution.types import Budget, EndReason, ProposalOutcome, RunConfig, RunStatus
from tests.db.world import ALL, World, candidate_result, failed, from_list, problem

pytestmark = pytest.mark.both_stacks(soak=True)

LATER = timedelta(minutes=15)


def sweep(engine: Engine, after: timedelta = LATER) -> list[str]:
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + after
        return jobs.sweep(s)


def state_of(engine: Engine, job: Job) -> tuple[str, int]:
    with read_session(engine) as s:
        row = s.get_one(JobRow, job.id)
        return row.state, row.attempts


@pytest.mark.both_stacks
def test_a_job_is_claimed_once(engine: Engine) -> None:
    world = World(engine)
    world.start()
    job = world.claim()
    assert job is not None
    assert job.kind == JobKind.ADMIT
    assert world.claim(worker="w2") is None


def test_only_the_queues_asked_for(engine: Engine) -> None:
    world = World(engine)
    world.start()
    assert world.claim("gpu.cuda", "build") is None
    assert world.claim("cpu") is not None


def test_confirmations_are_claimed_first(engine: Engine) -> None:
    world = World(engine)
    world.start()
    with write_session(engine) as s:
        first = s.scalars(select(JobRow).where(JobRow.kind == JobKind.ADMIT)).one()
        s.add(
            JobRow(
                id=first.id + "z", kind=JobKind.CONFIRM, queue=first.queue, subject_id="eval_x", ordinal=1,
                project_id=first.project_id, state="ready", urgent=True, created_at=first.created_at,
                    nudged_at=first.nudged_at,
            )
        )  # fmt: skip
    job = world.claim()
    assert job is not None
    assert job.kind == JobKind.CONFIRM


@pytest.mark.both_stacks
def test_a_heartbeat_keeps_a_lease(engine: Engine) -> None:
    world = World(engine)
    world.start()
    job = world.claim(lease_s=60)
    assert job is not None
    with write_session(engine) as s:
        assert jobs.heartbeat(s, job, 3600)
    sweep(engine)
    assert state_of(engine, job) == ("claimed", 1)


@pytest.mark.both_stacks
def test_a_killed_worker_loses_its_job_and_may_not_settle_it(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    lost = world.take(JobKind.PROPOSE)
    assert "propose" in sweep(engine)
    assert state_of(engine, lost) == ("ready", 1)
    taken = world.claim("propose", worker="w2")
    assert taken is not None
    assert (taken.id, taken.attempt) == (lost.id, 2)
    with write_session(engine) as s:
        assert not jobs.heartbeat(s, lost, 60)
        assert job_reads.payload(s, lost) is None
        assert settle.settle_proposal(s, lost, candidate_result("speed=9")) == []
        assert settle.fail_job(s, lost, "late", ours=True) == []
    world.work(taken)
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
        assert candidates.source(s, candidate.id).source == "speed=1.5"
        detail = proposals.list(s, run.id)[-1].detail
    assert "begun 2 times" in detail


def test_three_silent_workers_end_a_proposal(engine: Engine) -> None:
    world = World(engine)
    run = world.start(config=RunConfig(in_flight=1))
    job = world.take(JobKind.PROPOSE)
    for _ in range(2):
        sweep(engine)
        again = world.claim("propose")
        assert again is not None
    sweep(engine)
    assert state_of(engine, job) == ("dead", 3)
    with read_session(engine) as s:
        first = proposals.list(s, run.id)[-1]
    assert first.outcome is ProposalOutcome.ENDPOINT_ERROR
    assert "stopped responding on attempt 3" in first.detail
    world.drain()
    assert world.run(run.id).status.ended


def test_a_run_whose_workers_are_all_lost_tells_of_the_workers(engine: Engine) -> None:
    world = World(engine)
    run = world.start(config=RunConfig(in_flight=1))
    while (job := world.claim()) is not None:
        if job.kind == JobKind.PROPOSE:
            sweep(engine)
        else:
            world.work(job)
    ended = world.run(run.id)
    assert (ended.status, ended.end_reason) == (RunStatus.FAILED, EndReason.INTERNAL_ERROR)
    assert "all workers of" in ended.message
    assert "stopped responding on attempt 3. It was killed (is memory short?)" in ended.message
    assert "see the end of its log" in ended.message
    assert "doctor" not in ended.message


def test_three_silent_judges_are_our_fault_and_not_the_candidates(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(config=RunConfig(in_flight=1))
    world.take(JobKind.JUDGE)
    for _ in range(2):
        sweep(engine)
        assert world.claim("cpu") is not None
    sweep(engine)
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
    assert candidate.verdict is Verdict.INTERNAL_ERROR
    assert world.run(run.id).spend.candidates == 0


def test_a_proposal_settles_once(engine: Engine) -> None:
    world = World(engine)
    run = world.start(config=RunConfig(in_flight=1))
    job = world.take(JobKind.PROPOSE)
    result = candidate_result("speed=1.5", input_tokens=100, usd=0.25)
    for _ in range(2):
        with write_session(engine) as s:
            settle.settle_proposal(s, job, result)
    with read_session(engine) as s:
        assert len(candidates.list(s, run.id)) == 1
        builds = s.scalars(select(JobRow).where(JobRow.kind == JobKind.BUILD)).all()
    assert len(builds) == 1
    assert world.run(run.id).spend.tokens == 100
    assert world.run(run.id).spend.usd == 0.25


@pytest.mark.both_stacks
def test_build_judge_and_confirm_settle_once(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(config=RunConfig(in_flight=1))
    for kind in (JobKind.ADMIT, JobKind.BUILD, JobKind.BASELINE, JobKind.JUDGE, JobKind.CONFIRM):
        job = world.take(kind)
        world.work(job)
        seq = world.run(run.id).last_seq
        spend = world.run(run.id).spend
        world.work_blindly(job)
        assert world.run(run.id).last_seq == seq, kind
        assert world.run(run.id).spend.device_s == spend.device_s
    assert world.run(run.id).spend.device_s == 2.0


@pytest.mark.both_stacks
def test_advance_settles_once_and_waits_once(engine: Engine) -> None:
    world = World(engine)
    run = world.start()
    job = world.take(JobKind.ADVANCE)
    with write_session(engine) as s:
        assert advance(s, job) == ["propose"]
    with write_session(engine) as s:
        assert advance(s, job) == []
    with read_session(engine) as s:
        assert len(proposals.list(s, run.id)) == run.config.in_flight
    failing = [world.claim("propose") for _ in range(2)]
    for propose in failing:
        assert propose is not None
        with write_session(engine) as s:
            settle.fail_job(s, propose, "no such model", ours=False)
    with read_session(engine) as s:
        waiting = s.scalars(select(JobRow).where(JobRow.kind == JobKind.ADVANCE, JobRow.state == "ready")).all()
    assert len(waiting) == 1


def test_internal_errors_are_retried_then_stored(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(config=RunConfig(in_flight=1))
    job = world.take(JobKind.JUDGE)
    for attempt in (1, 2, 3):
        assert job.attempt == attempt
        with read_session(engine) as s:
            [candidate] = candidates.list(s, run.id)
            fault = failed(world.problem, candidates.source(s, candidate.id), Verdict.INTERNAL_ERROR)
        with write_session(engine) as s:
            nudges = settle.settle_judge(s, job, fault)
        if attempt < 3:
            assert nudges == ["cpu"]
            again = world.claim("cpu")
            assert again is not None
            job = again
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
    assert candidate.verdict is Verdict.INTERNAL_ERROR
    spend = world.run(run.id).spend
    assert (spend.candidates, spend.device_s) == (0, 0.0)


def test_a_judge_that_always_fails_ends_the_run(engine: Engine) -> None:
    world = World(engine, propose=from_list(*(f"INTERNAL_ERROR # {n}" for n in range(50))))
    world.build = lambda item: BuildReport(candidate_hash=item.candidate.hash, signature=item.candidate.source)  # type: ignore[method-assign]
    run = world.start(config=RunConfig(in_flight=1))
    world.drain()
    ended = world.run(run.id)
    assert (ended.status, ended.end_reason) == (RunStatus.FAILED, EndReason.INTERNAL_ERROR)


@pytest.mark.both_stacks
def test_sweep_renudges_what_nobody_claimed(engine: Engine) -> None:
    world = World(engine)
    world.start()
    assert sweep(engine, timedelta(seconds=0)) == []
    assert sweep(engine, timedelta(seconds=6)) == ["cpu"]
    assert sweep(engine, timedelta(seconds=8)) == []
    assert sweep(engine, timedelta(seconds=12)) == ["cpu"]


def test_sweep_wakes_a_run_that_lost_its_work(engine: Engine) -> None:
    world = World(engine)
    run = world.start()
    world.take(JobKind.ADVANCE)
    with write_session(engine) as s:
        for row in s.scalars(select(JobRow)):
            row.state = "done"
    assert "control" in sweep(engine, timedelta(seconds=0))
    world.drain()
    assert world.run(run.id).status.ended


def test_the_wall_budget_ends_a_run_from_the_sweeper(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(budget=Budget(wall_s=100), config=RunConfig(in_flight=1))
    judging = world.take(JobKind.JUDGE)
    assert "control" in sweep(engine, timedelta(seconds=101))
    job = world.claim("control")
    assert job is not None
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(seconds=101)
        advance(s, job)
    ended = world.run(run.id)
    assert ended.status is RunStatus.FINISHED
    assert "time budget" in ended.message
    seq = ended.last_seq
    world.work(judging)
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
        assert [e.kind for e in events.after(s, run.id, seq)] == ["evaluation.settled"]
    assert candidate.verdict is Verdict.PASSED
    assert world.claim() is None


@pytest.mark.both_stacks
def test_projects_take_turns(engine: Engine) -> None:
    with write_session(engine) as s:
        for name, weight in (("busy", 1.0), ("heavy", 2.0)):
            s.add(Project(id=name, name=name, weight=weight, created_at=datetime.now(UTC)))
    for project, count in (("busy", 12), ("default", 4), ("heavy", 8)):
        for n in range(count):
            World(engine, problem=problem(f"{project} {n}")).start(project=project)
    world = World(engine)
    order = [job.project_id for _ in range(12) if (job := world.claim("cpu")) is not None]
    assert order.count("heavy") == pytest.approx(6, abs=1)
    assert order.count("busy") == pytest.approx(3, abs=1)
    assert order.count("default") == pytest.approx(3, abs=1)


def test_an_idle_project_saves_up_no_burst(engine: Engine) -> None:
    with write_session(engine) as s:
        s.add(Project(id="late", name="late", weight=1.0, created_at=datetime.now(UTC)))
    for n in range(20):
        World(engine, problem=problem(f"default {n}")).start()
    world = World(engine)
    for _ in range(10):
        world.claim("cpu")
    for n in range(10):
        World(engine, problem=problem(f"late {n}")).start(project="late")
    order = [job.project_id for _ in range(8) if (job := world.claim("cpu")) is not None]
    assert order.count("late") <= 5


def test_cancel_stops_what_is_ready_and_stores_what_is_in_flight(engine: Engine) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5", "speed=1.6", "speed=1.7", "speed=1.8"))
    run = world.start()
    judging = world.take(JobKind.JUDGE)
    proposing = world.claim("propose")
    with write_session(engine) as s:
        cancelled, nudges = runs.cancel_run(s, run.id)
    assert (cancelled.status, nudges) == (RunStatus.CANCELLED, [])
    assert world.claim(*ALL) is None
    world.work(judging)
    if proposing is not None:
        world.work(proposing)
    assert world.claim(*ALL) is None
    with read_session(engine) as s:
        judged = [c for c in candidates.list(s, run.id) if c.verdict is Verdict.PASSED]
        open_ones = [p for p in proposals.list(s, run.id) if p.outcome is None]
        unsettled = s.scalars(select(EvaluationRow).where(EvaluationRow.state.in_(("building", "judging")))).all()
    assert len(judged) == 1
    assert (open_ones, list(unsettled)) == ([], [])
    assert world.run(run.id).end_reason is EndReason.CANCELLED
    with write_session(engine) as s:
        assert runs.cancel_run(s, run.id)[0].end_reason is EndReason.CANCELLED


@pytest.mark.parametrize("kind", [JobKind.BUILD, JobKind.JUDGE, JobKind.CONFIRM])
def test_what_a_cancelled_run_has_on_a_device_is_broken_off(engine: Engine, kind: JobKind) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5"))
    run, other = world.start(), world.start()
    job = world.take(kind)
    ended, lives = (run.id, other.id) if job.run_id == run.id else (other.id, run.id)
    with write_session(engine) as s:
        assert jobs.heartbeat(s, job, 60)
        runs.cancel_run(s, ended)
    with write_session(engine) as s:
        assert not jobs.heartbeat(s, job, 3600)
    sweep(engine)
    assert state_of(engine, job) == ("dead", 1)
    with read_session(engine) as s:
        assert s.get_one(EvaluationRow, job.subject_id).state == "cancelled"
        assert all(c.verdict is not Verdict.INTERNAL_ERROR for c in candidates.list(s, ended))
    world.drain()
    assert world.run(lives).champion_id is not None


def test_what_a_cancelled_run_asked_a_proposer_is_kept_to_its_end(engine: Engine) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    job = world.take(JobKind.PROPOSE)
    with write_session(engine) as s:
        runs.cancel_run(s, run.id)
        assert jobs.heartbeat(s, job, 60)
        settle.settle_proposal(s, job, candidate_result("speed=1.5", usd=0.25))
    assert world.run(run.id).spend.usd == 0.25


def test_a_fault_while_its_run_is_cancelled_is_not_retried(engine: Engine) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    job = world.take(JobKind.JUDGE)
    with write_session(engine) as s:
        runs.cancel_run(s, run.id)
        assert settle.fail_job(s, job, "the judge was killed", ours=True) == []
    assert state_of(engine, job) == ("dead", 1)
    with read_session(engine) as s:
        assert s.get_one(EvaluationRow, job.subject_id).state == "cancelled"


def test_builds_for_a_gpu_are_its_own_workers(engine: Engine) -> None:
    """A worker without a GPU must not say of a CUDA Candidate whether it builds."""
    from db.transitions import problems, runs

    world = World(engine, propose=from_list("speed=1.5"))
    with write_session(engine) as s:
        stored = problems.create_problem(s, "default", world.problem)
        runs.create_run(s, "default", stored.id, DeviceKind.CUDA, Budget(candidates=1), RunConfig())
    seen = set()
    while job := world.claim("control", "propose", "build", "build.cuda", "cpu", "gpu.cuda"):
        seen.add((job.kind, job.queue))
        world.work(job)
    assert (JobKind.BUILD, "build.cuda") in seen
    assert {queue for _, queue in seen} == {"control", "propose", "build.cuda", "gpu.cuda"}


@pytest.mark.both_stacks
def test_what_is_asked_for_first_is_built_and_judged_first_whichever_is_answered_or_built_first(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.1", "speed=1.2", "speed=1.3"))
    world.start(Budget(candidates=3))
    while job := world.claim("control", "cpu"):
        world.work(job)
    asked = [job for _ in range(3) if (job := world.claim("propose")) is not None]
    first, *later = asked
    for job in (*later, first):  # the first one takes longest
        world.work(job)
    builds = [job for _ in range(3) if (job := world.claim("build")) is not None]
    for job in reversed(builds):
        world.work(job)
    judged = [job for _ in range(3) if (job := world.claim("cpu")) is not None]
    assert [job.kind for job in judged] == [JobKind.JUDGE] * 3
    with read_session(engine) as s:
        for done in (builds, judged):
            candidates = [s.get_one(EvaluationRow, job.subject_id).candidate_id for job in done]
            proposals = [s.get_one(CandidateRow, one).proposal_id for one in candidates]
            assert proposals == [job.subject_id for job in asked]


def test_pause_holds_and_resume_goes_on(engine: Engine) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5", "speed=1.6"))
    run = world.start(budget=Budget(wall_s=1000))
    world.work(world.take(JobKind.BASELINE))
    job = world.take(JobKind.JUDGE)
    with write_session(engine) as s:
        assert runs.pause_run(s, run.id)[0].status is RunStatus.PAUSED
    assert world.claim(*ALL) is None
    world.work(job)
    assert world.claim(*ALL) is None
    with write_session(engine) as s:
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(hours=1)
        resumed, nudges = runs.resume_run(s, run.id)
    assert resumed.status is RunStatus.RUNNING
    assert resumed.spend.wall_s < 100
    assert "cpu" in nudges
    world.drain()
    assert world.run(run.id).champion_id is not None


def test_pause_before_the_start(engine: Engine) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    with write_session(engine) as s:
        runs.pause_run(s, run.id)
    world.drain()
    assert world.run(run.id).status is RunStatus.PAUSED
    with write_session(engine) as s:
        runs.resume_run(s, run.id)
    world.drain()
    assert world.run(run.id).champion_id is not None


@pytest.mark.both_stacks
def test_two_runs_cannot_both_beat_the_same_champion_unseen(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    world.promote = lambda work, speedup: work.champion is None or "speed=1.5" not in work.champion.source
    first = world.start()
    slow = world.take(JobKind.CONFIRM)
    second = world.start(config=RunConfig(seed=1))
    world.drain()
    assert world.run(second.id).champion_id is not None
    world.work(slow)
    job = world.claim("cpu")
    assert job is not None
    assert job.kind == JobKind.CONFIRM
    with read_session(engine) as s:
        item = job_reads.payload(s, job)
    assert item is not None
    assert item.champion_id == world.run(second.id).champion_id
    world.work(job)
    world.drain()
    assert world.run(first.id).status.ended


def test_a_late_confirm_of_an_ended_run_still_promotes(engine: Engine) -> None:
    from db.transitions import runs

    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    job = world.take(JobKind.CONFIRM)
    with write_session(engine) as s:
        runs.cancel_run(s, run.id)
    world.work(job)
    assert world.run(run.id).champion_id is not None


def test_a_candidate_that_fails_its_confirmation_is_no_elite(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    job = world.take(JobKind.CONFIRM)
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
        source = candidates.source(s, candidate.id)
    with write_session(engine) as s:
        settle.settle_confirm(s, job, failed(world.problem, source, Verdict.INCORRECT_VALUES))
    world.drain()
    ended = world.run(run.id)
    assert ended.end_reason is EndReason.NO_IMPROVEMENT
    assert ended.best_id is None


@pytest.mark.both_stacks
def test_nul_characters_and_lone_surrogates_are_stored(engine: Engine) -> None:
    world = World(engine)
    run = world.start(config=RunConfig(in_flight=1))
    job = world.take(JobKind.PROPOSE)
    with write_session(engine) as s:
        settle.settle_proposal(
            s, job, candidate_result("speed=1.5 # \x00\ud800", reply="a\x00b", detail="\udfff", model="\ud800")
        )
    with read_session(engine) as s:
        [candidate] = candidates.list(s, run.id)
        assert "\x00" not in candidates.source(s, candidate.id).source
        assert proposals.get(s, proposals.list(s, run.id)[0].id).reply == "a\N{REPLACEMENT CHARACTER}b"
