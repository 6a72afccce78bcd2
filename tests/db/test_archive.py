"""The archive's elites, and what a model is told of earlier answers."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from db.engine import make_engine, migrate, read_session
from db.queues import JobKind
from db.repositories import archive, candidates
from db.views.rows import CandidateView
from db.views.work import ConfirmWork, ProposalResult, ProposeWork
from evaluator.types import Candidate, Evaluation, Stage, Verdict
from evolution.types import Budget, RunConfig
from tests.db.world import World, candidate_result, passed


def speed(one: CandidateView) -> float:
    return one.speedup.value if one.speedup is not None else 0.0


DESIGN = 'TUNABLES = {{"A": [1, 2, 4]}}\nCONFIG = {{"A": {value}}}\n'


class Tunable(World):
    """Judges a design by its value."""

    def judge(self, c: Candidate) -> Evaluation:
        found = re.search(r'CONFIG = {"A": (\d)}', c.source)
        return passed(self.problem, c, 1.0 + int(found[1]) / 10) if found else super().judge(c)

    def confirm(self, item: ConfirmWork) -> Evaluation:
        return passed(self.problem, item.candidate, 1.4, stage=Stage.CONFIRM, promote=True)


def test_the_fastest_of_every_design_is_an_elite(engine: Engine) -> None:
    def propose(work: ProposeWork) -> ProposalResult:
        if work.arm.operator == "tune":
            return candidate_result(DESIGN.format(value=work.hint["configuration"]["A"]))
        fixed = ("# plain speed=1.25", DESIGN.format(value=1), Verdict.INCORRECT_VALUES)
        return candidate_result(fixed[work.arm_number]) if work.arm_number < len(fixed) else candidate_result("")

    world = Tunable(engine, propose=propose)
    run = world.start(Budget(candidates=7), RunConfig(proposers=("synthesiser",), in_flight=1))
    world.drain()
    with read_session(engine) as s:
        made = {one.id: one for one in candidates.list(s, run.id, limit=100)}
        found = archive.elites(s, run.id)
    tunable = {one.id for one in made.values() if one.configuration}
    fastest = max((made[id] for id in tunable), key=speed)
    assert len(tunable) > 1
    assert fastest.operator == "tune"
    assert [one.id for one in found] == [one.id for one in sorted(found, key=speed, reverse=True)]
    assert {one.id for one in found} & tunable == {fastest.id}
    assert {one.id for one in found} - tunable == {one.id for one in made.values() if one.speedup} - tunable


def test_who_is_asked_is_told_what_is_still_being_judged(engine: Engine) -> None:
    told: list[list[tuple[int, Verdict | None]]] = []

    def propose(work: ProposeWork) -> ProposalResult:
        told.append([(one.number, one.verdict) for one in work.approaches])
        return candidate_result(f"answer_{len(told)} speed=1.{len(told)}")

    world = World(engine, propose=propose)
    world.start(Budget(candidates=4), RunConfig(proposers=("model",), in_flight=3))
    world.work(world.take(JobKind.PROPOSE))  # its Candidate is to be built and judged
    while len(told) < 2:
        job = world.claim("propose")
        assert job is not None
        world.work(job)
    assert told == [[], [(1, None)]]
    world.drain()
    assert len(told) == 4
    assert Verdict.PASSED in {verdict for _, verdict in told[-1]}


def filled(connection: Connection, table: str, **values: object) -> None:
    """A row with these values, and something in every other column that may not be empty."""
    some = {"INTEGER": 0, "DATETIME": "2026-01-01 00:00:00", "JSON": "{}", "DOUBLE": 0.0, "BOOLEAN": False}
    for column in inspect(connection).get_columns(table):
        if column["name"] not in values and not column["nullable"]:
            values[column["name"]] = some.get(str(column["type"]).split("(")[0].split(" ")[0], "")
    names = ", ".join(values)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES (:{', :'.join(values)})"), values)


def test_archives_from_before_get_an_elite_of_each_design(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/old.db")
    migrate(engine, "0023")
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        filled(connection, "problems", id="p", project_id="default")
        filled(connection, "runs", id="r", project_id="default", problem_id="p")
        for number, (family, speedup) in enumerate((("f", 1.2), ("f", 1.5), (None, 1.1), (None, None)), start=1):
            id = f"c{number}"
            filled(connection, "proposals", id=id, run_id="r", number=number)
            verdict = "PASSED" if speedup else "TIMEOUT"
            filled(
                connection, "candidates", id=id, run_id="r", problem_id="p", proposal_id=id, number=number, hash=id,
                family=family, speedup=speedup, verdict=verdict, elite=number == 1,
            )  # fmt: skip
        for kind, stage, number in (("first", "timing", 3), ("again", "timing", 2), ("again", "build", 1)):
            filled(connection, "tallies", run_id="r", kind=kind, stage=stage, verdict="PASSED", number=number)
    migrate(engine)
    with engine.connect() as connection:
        elites = connection.execute(text("SELECT id FROM candidates WHERE elite ORDER BY id")).scalars().all()
        tallies = connection.execute(text("SELECT kind, stage, number FROM tallies ORDER BY stage")).all()
    assert elites == ["c2", "c3"]
    assert [tuple(row) for row in tallies] == [("judge", "build", 1), ("judge", "timing", 5)]
    engine.dispose()
