"""Migrations, sessions, ids, packed samples, the command line."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

import db.engine
from db.__main__ import main
from db.engine import check, make_engine, migrate, newest_revision, read_session, write_session
from db.errors import Conflict, NotFound, SchemaMismatch, WrongAddress
from db.ids import new_id
from db.packing import clean, pack, unpack
from db.repositories import candidates, problems, proposals, runs
from db.tables.base import Base
from db.transitions import problems as problem_writes
from db.transitions import runs as run_writes
from db.transitions.work import devices
from evaluator.types import DeviceKind
from evolution.types import Budget, RunConfig
from tests.db.world import DEVICE, ENVIRONMENT, World, problem

pytestmark = pytest.mark.both_stacks


def test_the_migrations_make_what_the_tables_say(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    migrate(engine)
    check(engine)


def test_the_newest_revision_is_the_head_of_the_migrations() -> None:
    """Workers read it from the files' names, without Alembic."""
    config = Config()
    config.set_main_option("script_location", str(Path(db.engine.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [newest_revision()]


def test_the_migrations_name_and_default_as_the_tables_do(tmp_path: Path) -> None:
    made, declared = (make_engine(f"sqlite:///{tmp_path / name}.db") for name in ("made", "declared"))
    migrate(made)
    Base.metadata.create_all(declared)
    query = text(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger' AND name NOT LIKE 'alembic%'"
    )
    statements = []
    for engine in (made, declared):
        with engine.connect() as connection:
            statements.append(sorted(connection.execute(query).scalars()))
        engine.dispose()
    assert statements[0] == statements[1]


def test_a_database_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    engine = make_engine(url)
    migrate(engine)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    assert main(["migrate", url]) == 1
    assert "at revision 9999, which this version does not have: use a new database" in capsys.readouterr().err


def test_check_refuses_an_empty_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    engine = make_engine(url)
    with pytest.raises(SchemaMismatch, match="python -m db migrate"):
        check(engine)
    engine.dispose()
    assert main(["check", url]) == 1
    assert main(["migrate", url]) == 0
    assert main(["check", url]) == 0
    assert "newest revision" in capsys.readouterr().out


def test_the_command_needs_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPWRIGHT_DATABASE_URL", raising=False)
    with pytest.raises(SystemExit) as caught:
        main(["check"])
    assert caught.value.code == 2


WRONG_URLS = ("postgres://u:secret@h/n", "postgresql://u:secret@h/n", "mysql://h/n", "u:secret@h:x:/n", "")


@pytest.mark.parametrize("url", WRONG_URLS)
def test_a_url_of_no_database_is_refused_in_words(url: str) -> None:
    with pytest.raises(WrongAddress, match=r"postgresql\+psycopg://") as caught:
        make_engine(url)
    assert "secret" not in str(caught.value)


def test_the_command_says_why_a_database_cannot_be_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in (f"sqlite:///{tmp_path}/none/x.db", "postgresql+psycopg://u:secret@127.0.0.1:1/n"):
        assert main(["migrate", url]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "cannot be opened: " in line
        assert "secret" not in line
    with pytest.raises(SystemExit, match="2"):
        main(["check", "postgres://h/n"])
    assert "error: the database's URL cannot be used" in capsys.readouterr().err


def test_sqlite_is_set_up(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'x.db'}")
    with engine.connect() as connection:
        found = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "foreign_keys")}
        assert connection.execute(text("PRAGMA busy_timeout")).scalar() == 10_000
    engine.dispose()
    assert found == {"journal_mode": "wal", "foreign_keys": 1}


def test_a_write_session_rolls_back_whole(engine: Engine) -> None:
    world = World(engine)
    with pytest.raises(ZeroDivisionError), write_session(engine) as s:  # noqa: PT012  (the error must come last)
        problem_id = problem_writes.create_problem(s, "default", problem()).id
        1 / 0
    with read_session(engine) as s, pytest.raises(NotFound):
        problems.get(s, problem_id)
    assert world.claim() is None


def test_foreign_keys_hold(engine: Engine) -> None:
    with pytest.raises(IntegrityError), write_session(engine) as s:
        s.execute(
            text(
                "INSERT INTO events (run_id, seq, kind, data, created_at)"
                " VALUES ('no', 1, 'x', '{}', CURRENT_TIMESTAMP)"
            )
        )


def test_ids_sort_as_they_were_made() -> None:
    ids = [new_id("run") for _ in range(1000)]
    assert ids == sorted(ids)
    assert len({len(id) for id in ids}) == 1
    assert all(id.startswith("run_") for id in ids)


@given(st.lists(st.floats(allow_nan=False)).map(tuple))
def test_samples_come_back_bit_for_bit(samples: tuple[float, ...]) -> None:
    assert all(
        math.copysign(1, a) == math.copysign(1, b) and a == b
        for a, b in zip(unpack(pack(samples)), samples, strict=True)
    )


@given(st.text(st.characters()))
def test_clean_text_can_be_stored(dirty: str) -> None:
    assert "\x00" not in clean(dirty)
    clean(dirty).encode()


def test_problems_are_stored_once_and_listed_in_pages(engine: Engine) -> None:
    for n in range(5):
        World(engine, problem=problem(str(n))).start()
    World(engine, problem=problem("3")).start()
    with read_session(engine) as s:
        first = problems.list(s, "default", limit=3)
        rest = problems.list(s, "default", limit=3, after=first[-1].id)
        assert [view.problem.source for view in (*first, *rest)] == ["4", "3", "2", "1", "0"]
        pages = itertools.chain(
            runs.list(s, "default", limit=4), runs.list(s, "default", after=runs.list(s, "default", limit=4)[-1].id)
        )
        assert len(list(pages)) == 6
        assert problems.get(s, first[0].id).problem == problem("4")


def test_another_projects_things_are_not_found(engine: Engine) -> None:
    run = World(engine).start()
    with read_session(engine) as s:
        for read, id in (
            (runs.get, run.id),
            (problems.get, run.problem_id),
            (candidates.get, "cand_x"),
            (proposals.get, "p"),
        ):
            with pytest.raises(NotFound):
                read(s, id, project_id="other")
    with write_session(engine) as s:
        with pytest.raises(NotFound):
            run_writes.cancel_run(s, run.id, project_id="other")
        with pytest.raises(NotFound):
            run_writes.create_run(s, "other", run.problem_id, DeviceKind.CPU, Budget(candidates=1), RunConfig())


def test_an_ended_run_can_be_neither_paused_nor_resumed(engine: Engine) -> None:
    run = World(engine).start()
    with write_session(engine) as s:
        run_writes.cancel_run(s, run.id)
        for change in (run_writes.pause_run, run_writes.resume_run):
            with pytest.raises(Conflict, match="ended"):
                change(s, run.id)


def test_a_new_environment_asks_for_a_new_admission(engine: Engine) -> None:
    from dataclasses import replace

    world = World(engine)
    world.start()
    world.drain()
    with write_session(engine) as s:
        devices.register(s, DEVICE, ENVIRONMENT, ("no network namespace",))
    world.start()
    world.drain()
    assert [job.kind for job in world.done].count("admit") == 1
    with write_session(engine) as s:
        devices.register(s, DEVICE, replace(ENVIRONMENT, torch="2.14"), ())
    world.start()
    job = world.claim()
    assert job is not None
    assert job.kind == "admit"
