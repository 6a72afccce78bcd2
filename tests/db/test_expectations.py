"""The expected use of a Run comes from earlier searches."""

from __future__ import annotations

from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.repositories.expectations import expectation
from db.transitions.submit import submit_candidate
from evaluator.types import Candidate, DeviceKind, Language
from evolution.types import Budget
from tests.db.world import World, from_list


def test_kernels_that_were_only_judged_are_left_out(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5", "speed=1.2"))
    problem_id = world.start(Budget(candidates=2)).problem_id
    world.drain()
    with write_session(engine) as s:
        mine = Candidate(source="speed=0.9", language=Language.CPP)
        submit_candidate(s, "default", problem_id, DeviceKind.CPU, mine, by="me")
    world.drain()
    with read_session(engine) as s:
        found = expectation(s, "default", DeviceKind.CPU)
    assert found is not None
    assert found.runs == 1
