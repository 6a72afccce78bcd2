"""Series for pages are kept as events happen, and agree with the rows."""

from __future__ import annotations

from sqlalchemy import Engine, func, select

from db.engine import read_session
from db.repositories import history
from db.tables.core import EvaluationRow
from tests.db.world import World, from_list


def test_milestones_and_tallies_tell_the_story_of_a_run(engine: Engine) -> None:
    world = World(
        engine, propose=from_list("speed=1.6 ", "INCORRECT_VALUES", "speed=2.4 ", "speed=2.0 ", "BUILD_ERROR")
    )
    run = world.start()
    world.drain()
    with read_session(engine) as s:
        found = history.milestones(s, run.id)
        tallies = history.tallies(s, run.id)
        settled = s.scalars(
            select(func.count()).select_from(EvaluationRow).where(EvaluationRow.state == "settled")
        ).one()
        crowned = history.champions_of(s, run.id)
        arms = history.arms(s, run.id)
    assert [(m.speedup.value, m.confirmed) for m in found][:2] == [(1.6, False), (2.4, False)]
    assert found[-1].confirmed
    assert found[-1].candidate_id == crowned[0].candidate_id == world.run(run.id).champion_id
    assert sorted(m.evaluations for m in found) == [m.evaluations for m in found]
    assert 0 < found[0].device_s < found[-1].device_s
    assert sum(tally.number for tally in tallies) == settled
    failed = {tally.verdict.value: tally.number for tally in tallies if tally.verdict.value != "PASSED"}
    assert failed == {"INCORRECT_VALUES": 1, "BUILD_ERROR": 1}
    assert sum(tally.number for tally in tallies if tally.kind == "confirm") == len(crowned)
    assert sum(arm.passed for arm in arms) == 3
