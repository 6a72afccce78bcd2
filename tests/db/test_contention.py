"""Four processes at once on one database: no update is lost, no event leaves a gap, no Job is claimed twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.engine import read_session
from db.repositories import events
from tests.db import contender
from tests.db.world import World, problem

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
