"""One database for each test: ask for `engine`. On SQLite; on PostgreSQL too for modules marked `both_stacks`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from db.base import Base
from db.engine import make_engine, migrate
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
    chosen = any("url" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "url" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("url", stacks.parameters(metafunc), indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty, migrated database."""
    if request.param == "sqlite":
        path = tmp_path / "test.db"
        path.write_bytes(request.getfixturevalue("sqlite_template"))
        return f"sqlite:///{path}"
    found: str = request.getfixturevalue("postgres_url")
    engine = make_engine(found)
    with engine.begin() as connection:
        # Not TRUNCATE: that makes new files for every table and index, which takes a fifth of a second.
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for table in Base.metadata.sorted_tables:
            connection.execute(
                text(f'DELETE FROM "{table.name}"' + (" WHERE id <> 'default'" * (table.name == "projects")))
            )
    engine.dispose()
    return found


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """An engine on an empty, migrated database."""
    made = make_engine(url)
    yield made
    made.dispose()
