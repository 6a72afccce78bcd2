"""Four processes at once on one database: no update is lost, no event leaves a gap, no Job is claimed twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.engine import read_session
from db.repositories import events
from tests.db.world import World, problem

pytestmark = pytest.mark.both_stacks

PROCESSES = 4
ROOT = Path(__file__).resolve().parents[2]


def contend(url: str, what: str, run_id: str, count: int) -> list[str]:
    """Start the processes, wait for them all, and return what they printed."""
    command = [sys.executable, "-m", "tests.db.contender", url, what, run_id, str(count)]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    lines: list[str] = []
    try:
        for process in started:
            out, err = process.communicate(timeout=90)
            assert process.returncode == 0, err
            lines += out.split()
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
    return lines


def test_no_update_is_lost(engine: Engine, url: str) -> None:
    world = World(engine)
    run = world.start()
    contend(url, "count", run.id, 100)
    assert world.run(run.id).spend.tokens == PROCESSES * 100


def test_events_of_concurrent_writers_have_no_gap(engine: Engine, url: str) -> None:
    run = World(engine).start()
    contend(url, "tell", run.id, 50)
    with read_session(engine) as s:
        found = events.after(s, run.id, 0, 1000)
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    assert len(found) == 1 + PROCESSES * 40


def test_every_job_is_claimed_by_one(engine: Engine, url: str) -> None:
    for n in range(60):
        World(engine, problem=problem(str(n))).start()
    claimed = contend(url, "claim", "-", 0)
    assert len(claimed) == 60
    assert len(set(claimed)) == 60
