"""Frequent queries read only the Jobs that are not over, however many are."""

from __future__ import annotations

from sqlalchemy import Engine, text

from bench.seed.__main__ import seed
from bench.seed.plan import Scale
from bench.service.plans import plan, recording
from db.engine import read_session, write_session
from db.repositories.work import fleet, queue
from db.repositories.work.operations import picture
from db.transitions.work import retention
from db.transitions.work.jobs import sweep

SMALL = Scale(candidates=2000, runs=10, problems=8, projects=3, largest_run=1500, largest_project=1600)


def test_nobody_walks_over_the_jobs_that_are_done(engine: Engine) -> None:
    seed(engine, SMALL)
    with write_session(engine) as s:
        retention.gather_statistics(s)
        s.execute(text("UPDATE runs SET status = 'finished', end_reason = 'budget' WHERE status = 'running'"))
    with recording(engine) as statements:
        with read_session(engine) as s:
            picture(s)
            queue.depths(s)
            fleet.workers(s)
        with write_session(engine) as s:
            sweep(s)
    asked = [one for one in statements if "jobs" in one.sql and one.sql.startswith(("SELECT", "UPDATE"))]
    assert len(asked) >= 5
    if engine.dialect.name == "sqlite":  # PostgreSQL rightly reads a small table whole
        for one in asked:
            lines = [line for line in plan(engine, one) if "jobs" in line]
            assert not [line for line in lines if line.startswith("SCAN") and "alive" not in line], (one.sql, lines)
