"""Four processes at once on one database: no update is lost, no event leaves a gap, no Job is claimed twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories import events
from db.tables.queue import JobRow
from db.transitions.access.projects import charge, create_project
from db.transitions.runs import cancel_run, pause_run
from db.transitions.work import jobs, settle
from db.views.access import Quota
from evolution.types import RunStatus
from tests.db import contender
from tests.db.world import World, from_list, problem

pytestmark = pytest.mark.both_stacks

PROCESSES = 4
ROOT = Path(__file__).resolve().parents[2]


def contend(url: str, run_id: str) -> list[str]:
    """Start the processes, wait for them all, and return what they printed."""
    command = [sys.executable, "-m", "tests.db.contender", url, run_id, str(PROCESSES)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        try:
            out, err = started.communicate(timeout=90)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, err
    return out.split()


def test_four_processes_lose_no_update_leave_no_gap_and_claim_each_job_once(engine: Engine, url: str) -> None:
    world = World(engine)
    run = world.start()
    for n in range(29):
        World(engine, problem=problem(str(n))).start()
    claimed = contend(url, run.id)
    assert world.run(run.id).spend.tokens == PROCESSES * contender.COUNTED
    with read_session(engine) as s:
        found = events.after(s, run.id, 0, 1000)
    told = [event for event in found if event.kind == "test.told"]
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    assert len(told) == PROCESSES * contender.TOLD * 4 // 5
    assert len(claimed) == 30
    assert len(set(claimed)) == 30


ON_POSTGRES = pytest.mark.parametrize(
    "engine", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)  # SQLite has one writer at a time


def beside(engine: Engine, first: Callable[[Session], object], second: Callable[[Session], object]) -> None:
    """Do `second` in a transaction that ends, or waits for a lock, before the one of `first` commits."""

    def other() -> None:
        with write_session(engine) as s:
            second(s)

    waits = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with ThreadPoolExecutor(1) as pool:
        with write_session(engine) as s:
            first(s)
            s.flush()
            done = pool.submit(other)
            while not done.done():
                with engine.connect() as connection:
                    if connection.execute(waits).scalar_one():
                        break
        done.result(60.0)


@ON_POSTGRES
def test_a_step_that_fails_while_its_run_is_paused_is_held(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start()
    job = world.take(JobKind.BUILD)
    beside(engine, lambda s: pause_run(s, run.id), lambda s: settle.fail_job(s, job, "no disk", ours=True))
    with read_session(engine) as s:
        assert s.get_one(JobRow, job.id).state == "held"


@ON_POSTGRES
def test_a_run_that_is_cancelled_while_the_sweeper_holds_its_project_undoes_no_sweep(engine: Engine) -> None:
    with write_session(engine) as s:
        project = create_project(s, "tenant", quota=Quota(device_s_per_month=1.0)).id
    world = World(engine)
    cancelled, other = world.start(project=project), world.start(project=project)
    with write_session(engine) as s:
        charge(s, project, device_s=2.0)
    beside(engine, lambda s: cancel_run(s, cancelled.id), jobs.sweep)
    assert world.run(cancelled.id).status is RunStatus.CANCELLED
    assert world.run(other.id).status is RunStatus.PAUSED
