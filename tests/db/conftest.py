"""One database for each test, on SQLite and on PostgreSQL alike: ask for `engine`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import URL, make_url

from db.base import Base
from db.engine import make_engine, migrate

_CANDIDATES = ("postgresql+psycopg://postgres@127.0.0.1:5432/postgres", "postgresql+psycopg:///postgres")


def _reachable(url: URL) -> str | None:
    """None, or why there is no server at this address."""
    try:
        with psycopg.connect(url.set(drivername="postgresql").render_as_string(False), connect_timeout=3):
            return None
    except psycopg.OperationalError as error:
        return str(error).strip().splitlines()[0]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A throwaway PostgreSQL database, migrated; the test is skipped, saying why, where there is no server."""
    given = os.environ.get("WARPWRIGHT_TEST_POSTGRES_URL")
    urls = [make_url(url) for url in ([given] if given else _CANDIDATES)]
    reasons = [_reachable(url) for url in urls]
    server = next((url for url, reason in zip(urls, reasons, strict=True) if reason is None), None)
    if server is None:
        pytest.skip(f"no PostgreSQL server (set WARPWRIGHT_TEST_POSTGRES_URL): {reasons[0]}")
    name = f"warpwright_test_{uuid.uuid4().hex[:12]}"
    plain = server.set(drivername="postgresql").render_as_string(False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    url = server.set(database=name).render_as_string(False)
    engine = make_engine(url)
    migrate(engine)
    engine.dispose()
    yield url
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


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


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty, migrated database."""
    if request.param == "sqlite":
        path = tmp_path / "test.db"
        path.write_bytes(request.getfixturevalue("sqlite_template"))
        return f"sqlite:///{path}"
    found: str = request.getfixturevalue("postgres_url")
    engine = make_engine(found)
    with engine.begin() as connection:
        names = ", ".join(f'"{table.name}"' for table in Base.metadata.sorted_tables if table.name != "projects")
        connection.execute(text(f"TRUNCATE {names}"))
        connection.execute(text("DELETE FROM projects WHERE id <> 'default'"))
    engine.dispose()
    return found


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """An engine on an empty, migrated database."""
    made = make_engine(url)
    yield made
    made.dispose()
