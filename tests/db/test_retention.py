"""Raw samples: packed in a table of their own, dropped when they are old, kept where they are a Champion's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session

from bench.seed.__main__ import seed
from bench.seed.plan import Scale
from db.engine import read_session, write_session
from db.ids import first_id, new_id
from db.repositories import candidates, evaluations
from db.tables.core import BaselineRow, EvaluationRow, SampleRow
from db.transitions.work import retention
from tests.db.world import SAMPLES, World, from_list

pytestmark = pytest.mark.both_stacks(soak=True)


def owners(engine: Engine) -> set[str]:
    with read_session(engine) as s:
        return set(s.scalars(select(SampleRow.owner_id)))


def drop_all(engine: Engine, before: datetime) -> int:
    """As the sweeper does it; how many transactions it took."""
    place: str | None = ""
    for number in range(1000):
        with write_session(engine) as s:
            place = retention.drop_samples(s, before, after=place)
        if place is None:
            return number
    raise AssertionError("it never came to an end")


def test_ids_of_a_moment_lie_before_and_after_it() -> None:
    before, id, after = (
        datetime.now(UTC) - timedelta(seconds=1),
        new_id("eval"),
        datetime.now(UTC) + timedelta(seconds=1),
    )
    assert first_id("eval", before) < id < first_id("eval", after)
    assert len(first_id("eval", before)) == len(id)


def test_bodies_carry_no_raw_samples(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    world.start()
    world.drain()
    with read_session(engine) as s:
        for body in (*s.scalars(select(EvaluationRow.body)), *s.scalars(select(BaselineRow.body))):
            assert body is not None
            text = json.dumps(body)
            assert all(str(sample) not in text for sample in SAMPLES[1:])
            for measurement in body.get("measurements", ()):
                assert measurement["samples_us"] == [measurement["median_us"]]
                assert all(baseline["samples_us"] == [] for baseline in measurement["baselines"])


@pytest.mark.parametrize("batch", [1, 500])
def test_old_samples_go_and_champions_keep_theirs(engine: Engine, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", batch)
    world = World(engine, propose=from_list("speed=1.5", "speed=1.2", "speed=1.1", "INCORRECT_VALUES"))
    run = world.start()
    world.drain()
    champion = world.run(run.id).champion_id
    assert champion is not None
    had = owners(engine)
    assert drop_all(engine, datetime.now(UTC) - timedelta(days=1)) == 0
    assert owners(engine) == had
    assert drop_all(engine, datetime.now(UTC) + timedelta(days=1)) >= 1
    kept = owners(engine)
    assert kept < had
    with read_session(engine) as s:
        of_champion = {view.id for view in evaluations.list(s, champion)}
        assert {id for id in kept if id.startswith("eval_")} == of_champion
        assert len(of_champion) >= 2  # its judgings as well as its confirmation
        assert {id for id in kept if id.startswith("base_")} == {id for id in had if id.startswith("base_")}
        assert evaluations.for_candidate(s, champion)[0].measurements[0].samples_us == SAMPLES
        other = next(c for c in candidates.list(s, run.id) if c.id != champion and c.speedup is not None)
        (judged, *_) = evaluations.for_candidate(s, other.id)
        assert judged.measurements[0].samples_us == (judged.measurements[0].median_us,)
        assert judged.speedup("fastest") is not None


@pytest.mark.both_stacks
def test_baselines_that_no_champion_was_compared_with_go_too(engine: Engine) -> None:
    world = World(engine, propose=from_list("INCORRECT_VALUES"))
    world.start()
    world.drain()
    assert any(id.startswith("base_") for id in owners(engine))
    drop_all(engine, datetime.now(UTC) + timedelta(days=1))
    assert owners(engine) == set()


def test_sqlite_learns_what_its_tables_have_become(engine: Engine) -> None:
    seed(engine, Scale(candidates=300, runs=10, problems=8, projects=3, largest_run=150, largest_project=200))
    with write_session(engine) as s:
        s.execute(text("DELETE FROM sqlite_stat1" if known(s) else "SELECT 1"))
        retention.gather_statistics(s)
    with read_session(engine) as s:
        if engine.dialect.name == "sqlite":
            assert s.scalar(text("SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'candidates'"))


def known(s: Session) -> bool:
    """Return True if SQLite has gathered anything yet."""
    if s.get_bind().dialect.name != "sqlite":
        return False
    return bool(s.scalar(text("SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_stat1'")))
