"""The family of a Problem, read once when it is stored."""

from __future__ import annotations

from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.repositories import problems
from db.transitions.problems import create_problem
from evaluator.problem import read_problem
from evaluator.screening.family import Family

SOURCE = "def reference(x):\n    return x.{call}(-1)\n\n\ndef get_inputs():\n    return []\n"


def test_a_stored_problem_has_its_family(engine: Engine) -> None:
    with write_session(engine) as s:
        view = create_problem(s, "default", read_problem(SOURCE.format(call="cumsum"), "running total"))
    with read_session(engine) as s:
        assert problems.get(s, view.id).family is Family.SCAN
        assert problems.list(s, "default", family="scan") == (problems.get(s, view.id),)
        assert problems.list(s, "default", family="loss") == ()
