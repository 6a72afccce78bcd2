"""Families of Problems: read once, when a Problem is stored, and for those that were there before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from db.engine import make_engine, migrate, read_session, write_session
from db.repositories import problems
from db.transitions.problems import create_problem
from evaluator.problem import read_problem
from evaluator.schema import to_json
from evaluator.screening.family import Family

SOURCE = "def reference(x):\n    return x.{call}(-1)\n\n\ndef get_inputs():\n    return []\n"


def test_a_stored_problem_has_its_family(engine: Engine) -> None:
    with write_session(engine) as s:
        view = create_problem(s, "default", read_problem(SOURCE.format(call="cumsum"), "running total"))
    with read_session(engine) as s:
        assert problems.get(s, view.id).family is Family.SCAN
        assert problems.list(s, "default", family="scan") == (problems.get(s, view.id),)
        assert problems.list(s, "default", family="loss") == ()


@pytest.mark.parametrize(("call", "family"), [("softmax", Family.SOFTMAX), ("frobnicate", Family.OTHER)])
def test_problems_from_before_get_theirs(tmp_path: Path, call: str, family: Family) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/old.db")
    migrate(engine, "0017")
    with engine.execution_options(writes=True).begin() as connection:
        body = json.dumps(to_json(read_problem(SOURCE.format(call=call), "old")))
        connection.execute(
            text(
                "INSERT INTO problems (id, project_id, hash, name, description, body, schema_version, created_at) "
                "VALUES ('prob_old', 'default', 'h', 'old', '', :body, 1, '2026-01-01 00:00:00')"
            ),
            {"body": body},
        )
    migrate(engine)
    with read_session(engine) as s:
        assert problems.get(s, "prob_old").family is family
    engine.dispose()
