"""One database for each test: ask for `engine`. On SQLite; on PostgreSQL too for modules marked `both_stacks`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from db.engine import make_engine, migrate
from db.tables.base import Base
from tests.support import postgres, stacks


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A throwaway PostgreSQL database, migrated; the test is skipped, saying why, where there is no server."""
    try:
        server = postgres.server()
    except postgres.NoServer as error:
        pytest.skip(str(error))
    with postgres.database(server) as made:
        url = made.render_as_string(False)
        engine = make_engine(url)
        migrate(engine)
        engine.dispose()
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a migrated, empty SQLite database."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    engine = make_engine(f"sqlite:///{path}")
    migrate(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    engine.dispose()
    return path.read_bytes()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = any("engine" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "engine" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("engine", stacks.parameters(metafunc), indirect=True)


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    """One engine for each kind of database: an engine remembers how statements are compiled, which takes long."""
    made: dict[str, Engine] = {}
    yield made
    for engine in made.values():
        engine.dispose()


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, engines: dict[str, Engine], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """An engine on an empty, migrated database."""
    kind: str = request.param
    if kind not in engines:
        path = tmp_path_factory.mktemp("database") / "test.db"
        engines[kind] = make_engine(
            f"sqlite:///{path}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
        )
    made = engines[kind]
    if kind == "sqlite":
        path = Path(str(made.url.database))
        for old in path.parent.glob("test.db-*"):
            old.unlink()
        path.write_bytes(request.getfixturevalue("sqlite_template"))
    else:
        _empty(made)
    yield made
    made.dispose()


@pytest.fixture
def url(engine: Engine) -> str:
    """The address of an empty, migrated database."""
    return engine.url.render_as_string(False)


def _empty(engine: Engine) -> None:
    """Not by TRUNCATE: that makes new files for every table and index, which takes a fifth of a second."""
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for table in Base.metadata.sorted_tables:
            those = " WHERE id <> 'default'" if table.name == "projects" else ""
            connection.execute(text(f'DELETE FROM "{table.name}"{those}'))
