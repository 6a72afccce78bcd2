"""Engines, sessions and migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from db.errors import SchemaMismatch, WrongAddress
from db.tables import counters

BUSY_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5
POOL_SIZE = 20
_MIGRATION_LOCK = 7_713_001
_MIGRATIONS = Path(__file__).parent / "migrations"
# Alembic is imported by who migrates alone: it takes a fifth of a worker's start.


def make_engine(url: str) -> Engine:
    """Create an engine for `sqlite:////abs/path.db` or `postgresql+psycopg://...`.

    SQLite: WAL, foreign keys, a busy timeout, and no implicit BEGIN of the driver (see `write_session`).
    PostgreSQL: READ COMMITTED, connections checked before use. Raise WrongAddress for any other URL.
    """
    if _driver_of(url) == "postgresql+psycopg":
        return create_engine(
            url,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            # A PostgreSQL connection is a process and slow to make, so keep as many as a busy service uses.
            pool_size=POOL_SIZE,
            max_overflow=POOL_SIZE,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S},
        )
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _driver_of(url: str) -> str:
    try:
        driver = make_url(url).drivername
    except ArgumentError:  # which repeats the URL and its password
        driver = ""
    if driver not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise WrongAddress(
            "the database's URL cannot be used: write sqlite:////absolute/path.db or"
            " postgresql+psycopg://user:password@host/name"
        )
    return driver


def no_answer(url: str, error: OperationalError) -> str:
    """Describe in a line, without the password, a database that cannot be opened."""
    reason = " ".join(str(error.orig).split())
    advice = ": is there its folder, and may this user write there?" if url.startswith("sqlite") else ""
    return f"the database {make_url(url).render_as_string()} cannot be opened: {reason}{advice}"


def _begin(connection: Connection) -> None:
    """Begin; a write transaction takes SQLite's write lock at once.

    A read lock that is upgraded later loses updates or fails.
    """
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    assert isinstance(connection, sqlite3.Connection)
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout={int(BUSY_TIMEOUT_S * 1000)}",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


@contextmanager
def read_session(engine: Engine) -> Iterator[Session]:
    """Open a session for reading: one snapshot on SQLite; ends with a rollback."""
    with Session(engine, autoflush=False) as s:
        yield s


@contextmanager
def write_session(engine: Engine) -> Iterator[Session]:
    """Open one write transaction: it commits at the end and rolls back on an error.

    Counts of `db.tables.counters` are written last. Make no model call and start no process inside.
    """
    with Session(engine.execution_options(writes=True)) as s, s.begin():
        yield s
        counters.flush(s)


def migrate(engine: Engine) -> None:
    """Bring the database to the newest revision. Several processes may call this at once.

    Raise SchemaMismatch for a database at a revision that this code does not have.
    """
    if revision_of(engine) == newest_revision():
        return
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    with engine.execution_options(writes=True).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        found = _revision(connection)
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise SchemaMismatch(
                f"the database is at revision {found}, which this version does not have: use a new database"
            ) from error


@cache
def newest_revision() -> str:
    """Return the revision that this code needs: the number with which the name of its newest migration begins."""
    return max(file.name.partition("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def revision_of(engine: Engine) -> str | None:
    """Return the revision of a database; None for an empty one."""
    with engine.connect() as connection:
        return _revision(connection)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return found


def check(engine: Engine) -> None:
    """Raise SchemaMismatch unless the database is at the newest revision."""
    newest = newest_revision()
    found = revision_of(engine)
    if found != newest:
        raise SchemaMismatch(
            f"the database is at revision {found}, the code needs {newest}: run `python -m db migrate`"
        )
