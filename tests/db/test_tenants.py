"""Quotas and what is public, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.errors import Conflict, NotFound, QuotaExceeded
from db.queues import JobKind
from db.repositories import candidates, leaderboard, problems
from db.repositories.access import projects
from db.tables.core import Project
from db.transitions import runs
from db.transitions.access.projects import archive_project, change_project, charge, create_project
from db.transitions.problems import create_problem, publish_problem
from db.transitions.reservations import reserve
from db.transitions.work import jobs
from db.views.access import Quota
from db.views.work import Call
from evaluator.types import DeviceKind
from evolution.types import Budget, RunConfig, RunStatus
from tests.db.world import World, candidate_result, from_list, problem

pytestmark = pytest.mark.both_stacks(soak=True)


def tenant(engine: Engine, name: str = "tenant", **quota: float) -> str:
    with write_session(engine) as s:
        return create_project(s, name, quota=Quota(**quota)).id  # type: ignore[arg-type]


def start(engine: Engine, project: str) -> None:
    with write_session(engine) as s:
        stored = create_problem(s, project, problem())
        runs.create_run(s, project, stored.id, DeviceKind.CPU, Budget(candidates=3), RunConfig())


@pytest.mark.both_stacks
def test_what_is_judged_and_asked_is_charged_to_its_project(engine: Engine) -> None:
    project = tenant(engine)
    world = World(engine, propose=lambda work: candidate_result("speed=1.5", usd=0.25, input_tokens=7))
    run = world.start(project=project, budget=Budget(candidates=1))
    world.drain()
    spend = world.run(run.id).spend
    with read_session(engine) as s:
        used, other = projects.usage(s, project), projects.usage(s, "default")
        s.info["now"] = lambda: datetime.now(UTC) + timedelta(days=40)
        later = projects.usage(s, project)
    assert (used.usd, used.tokens) == (spend.usd, 7)
    assert spend.usd == 0.25
    # The baselines of a Problem are no Run's, and are the project's all the same.
    assert used.device_s == pytest.approx(spend.device_s + 3.0, abs=0.5)
    assert (other.device_s, other.usd, other.live_runs) == (0.0, 0.0, 0)
    assert (later.usd, later.device_s, later.runs_today) == (0.0, 0.0, 0)


@pytest.mark.both_stacks
def test_runs_that_start_at_once_are_counted_one_after_the_other(engine: Engine) -> None:
    project = tenant(engine, live_runs=2)
    gate = threading.Barrier(5)

    def attempt(_: int) -> tuple[object, ...]:
        gate.wait(30)
        try:
            start(engine, project)
        except QuotaExceeded as error:
            return error.quota, error.used, error.allowed, error.resets_at
        return ()

    with ThreadPoolExecutor(5) as pool:
        found = sorted(pool.map(attempt, range(5)), key=len)
    assert found == [(), (), *[("live_runs", 2, 2, None)] * 3]


def test_the_runs_of_a_day_are_counted_till_midnight(engine: Engine) -> None:
    project = tenant(engine, runs_per_day=1)
    start(engine, project)
    with pytest.raises(QuotaExceeded) as refused:
        start(engine, project)
    assert refused.value.resets_at is not None
    assert timedelta(0) < refused.value.resets_at - datetime.now(UTC) <= timedelta(days=1)


def test_a_spent_quota_pauses_runs_with_a_reason_and_resuming_waits_for_room(engine: Engine) -> None:
    project = tenant(engine, device_s_per_month=1.0)
    world = World(engine, propose=from_list("speed=1.5", "speed=1.6"))
    run, other = world.start(project=project), world.start()
    world.take(JobKind.ADMIT)
    with write_session(engine) as s:
        charge(s, project, device_s=1.0)
    with write_session(engine) as s:
        jobs.sweep(s)
    paused = world.run(run.id)
    assert paused.status is RunStatus.PAUSED
    assert "quota" in paused.message
    assert not world.run(other.id).status.ended
    assert world.run(other.id).status is not RunStatus.PAUSED
    with write_session(engine) as s, pytest.raises(QuotaExceeded):
        runs.resume_run(s, run.id)
    with write_session(engine) as s:
        change_project(s, project, quota=Quota(device_s_per_month=100.0))
        resumed, _ = runs.resume_run(s, run.id)
    assert (resumed.status is RunStatus.PAUSED, resumed.message) == (False, "")


@pytest.mark.both_stacks
@pytest.mark.parametrize("step", [JobKind.ADMIT, JobKind.BASELINE])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "over its quota"])
def test_what_a_spent_project_ordered_is_done_for_another_that_waits_for_it(
    engine: Engine, step: JobKind, closed: bool
) -> None:
    owner, guest = tenant(engine, "owner"), tenant(engine, "guest")
    world = World(engine)
    ordered = world.start(project=owner)
    if step is JobKind.BASELINE:
        admitting = world.claim("cpu")
        assert admitting is not None
        world.work(admitting)
    with write_session(engine) as s:
        publish_problem(s, ordered.problem_id, owner, public=True)
        joined, _ = runs.create_run(s, guest, ordered.problem_id, DeviceKind.CPU, Budget(candidates=1), RunConfig())
        if closed:
            archive_project(s, owner)
        else:
            change_project(s, owner, quota=Quota(device_s_per_month=1.0))
            charge(s, owner, device_s=2.0)
    assert world.claim("cpu") is None
    with write_session(engine) as s:
        jobs.sweep(s)
    job = world.claim("cpu")
    assert job is not None
    assert (job.kind, job.project_id) == (step, guest)
    world.work(job)
    world.drain()
    assert world.run(joined.id).status.ended
    assert world.run(ordered.id).status is RunStatus.PAUSED


def test_dollars_are_held_before_a_call_over_all_runs_of_a_project(engine: Engine) -> None:
    """Two calls of 1000 tokens at a tenth of a cent each: the quota of 1.5 dollars pays one and a half."""
    project = tenant(engine, usd_per_month=1.5)
    world = World(engine)
    claimed = []
    for n in range(2):
        world.problem = problem(f"class Model: ... # {n}")
        world.start(project=project, config=RunConfig(in_flight=1))
        claimed.append(world.take(JobKind.PROPOSE))
    call = Call(input_tokens=0, output_tokens=1000, least_output_tokens=1, usd_per_output=0.001)
    granted = []
    for job in claimed:
        with write_session(engine) as s:
            granted.append(reserve(s, job, call))
    assert granted[0] == 1000
    assert granted[1] == pytest.approx(500, abs=1)


def test_public_problems_are_seen_and_run_by_all_and_others_are_not_there(engine: Engine) -> None:
    owner, stranger = tenant(engine, "owner"), tenant(engine, "stranger")
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(project=owner)
    world.drain()
    ended = world.run(run.id)
    champion = ended.champion_id or ""
    with read_session(engine) as s:
        for look in (
            lambda: problems.get(s, run.problem_id, project_id=stranger),
            lambda: candidates.get(s, champion, project_id=stranger),
        ):
            with pytest.raises(NotFound):
                look()
        assert leaderboard.rows(s, stranger) == ()
    with write_session(engine) as s:
        with pytest.raises(NotFound):
            publish_problem(s, run.problem_id, stranger, public=True)
        with pytest.raises(NotFound):
            runs.create_run(s, stranger, run.problem_id, DeviceKind.CPU, Budget(candidates=1), RunConfig())
        publish_problem(s, run.problem_id, owner, public=True)
        with pytest.raises(NotFound):
            publish_problem(s, run.problem_id, stranger, public=False)
    with read_session(engine) as s:
        assert problems.get(s, run.problem_id, project_id=stranger).public
        assert candidates.get(s, champion, project_id=stranger).id == champion
        assert [row.candidate_id for row in leaderboard.rows(s, stranger)] == [champion]
        assert problems.list(s, stranger) == ()
        assert [view.id for view in problems.list(s, stranger, public=True)] == [run.problem_id]
    with write_session(engine) as s:
        mine, _ = runs.create_run(s, stranger, run.problem_id, DeviceKind.CPU, Budget(candidates=4), RunConfig())
        assert mine.champion_id == champion  # a warm start from what is public
        with pytest.raises(NotFound):
            runs.pause_run(s, mine.id, project_id=owner)
        with pytest.raises(Conflict, match="stays public"):
            publish_problem(s, run.problem_id, owner, public=False)


def test_seeds_are_taken_from_ones_own_candidates_alone(engine: Engine) -> None:
    owner, stranger = tenant(engine, "owner"), tenant(engine, "stranger")
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(project=owner)
    world.drain()
    champion = world.run(run.id).champion_id
    assert champion is not None
    with write_session(engine) as s:
        copy = create_problem(s, stranger, problem())
        config = RunConfig(seed_candidates=(champion,))
        with pytest.raises(NotFound):
            runs.create_run(s, stranger, copy.id, DeviceKind.CPU, Budget(candidates=4), config)
        mine, _ = runs.create_run(s, stranger, copy.id, DeviceKind.CPU, Budget(candidates=4), RunConfig())
    world.drain()
    assert mine.champion_id is None
    assert world.run(mine.id).champion_id not in (None, champion)


def test_names_of_projects_are_taken_once(engine: Engine) -> None:
    project = tenant(engine, "one")
    for taken in ("one", "default", project):
        with write_session(engine) as s, pytest.raises(Conflict):
            create_project(s, taken)
    with write_session(engine) as s:
        assert change_project(s, project, name="one").name == "one"
        with pytest.raises(NotFound):
            change_project(s, "none", name="two")


def test_a_name_that_is_taken_meanwhile_is_a_conflict(engine: Engine) -> None:
    def take() -> str:
        try:
            with write_session(engine) as s:
                return create_project(s, "twice").name
        except Conflict as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = sorted(one.result() for one in [pool.submit(take) for _ in range(4)])
    assert found == ["there is a project 'twice' already; take another name"] * 3 + ["twice"]
    with write_session(engine) as s, s.no_autoflush:  # as on PostgreSQL: the check does not see the other one
        s.add(Project(id="other", name="unseen", weight=1.0, created_at=datetime.now(UTC)))
        with pytest.raises(Conflict, match="unseen"):
            create_project(s, "unseen")
        s.rollback()
