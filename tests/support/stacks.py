"""The stack of a test suite: SQLite without a broker, or PostgreSQL and Redis.

Tests that ask for `stack`, directly or through their fixtures, run on SQLite; those marked `both_stacks` on PostgreSQL
and Redis too. `both_stacks(soak=True)` does so with `--soak` alone: what such a test proves depends little on locks and
types of the database. `--stack postgres` (`make test-postgres`) runs all of them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from db.engine import make_engine, migrate
from tests.support import postgres
from tests.support.redis import redis_server

NOBODY = "redis://127.0.0.1:1/0"
"""An address without a broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """`name` is sqlite or postgres. `template` is a migrated database: a file, or one on `server`."""

    name: str
    redis_url: str
    folder: Path
    server: URL | None = None
    template: str = ""

    @property
    def has_broker(self) -> bool:
        return self.redis_url != NOBODY

    @contextmanager
    def database(self, folder: Path) -> Iterator[str]:
        """The URL of a new, migrated, empty database; `folder` is where a file may lie."""
        if self.server is None:
            path = folder / "warpwright.db"
            path.write_bytes(Path(self.template).read_bytes())
            yield f"sqlite:///{path}"
            return
        with postgres.database(self.server, self.template) as url:
            yield url.render_as_string(False)


@contextmanager
def make(name: str, folder: Path, *, asked_for: bool) -> Iterator[Stack]:
    """Bring a stack up. Skip if PostgreSQL is absent, unless it was requested by name."""
    with ExitStack() as stack:
        if name == "sqlite":
            path = folder / "template.db"
            _migrate(f"sqlite:///{path}")
            yield Stack(name=name, redis_url=NOBODY, folder=folder, template=str(path))
            return
        try:
            server = postgres.server()
        except postgres.NoServer as error:
            if asked_for:
                pytest.exit(f"--stack postgres: {error}", returncode=2)
            pytest.skip(str(error))
        template = stack.enter_context(postgres.database(server))
        _migrate(template.render_as_string(False))
        redis_url = stack.enter_context(redis_server(folder))
        yield Stack(name=name, redis_url=redis_url, folder=folder, server=server, template=template.database or "")


def _migrate(url: str) -> None:
    engine = make_engine(url)
    migrate(engine)
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("ROLLBACK")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql("BEGIN")
    engine.dispose()


def parameters(metafunc: pytest.Metafunc) -> list[object]:
    """The stacks that a test runs on."""
    on_postgres = pytest.param("postgres", marks=pytest.mark.postgres)
    if metafunc.config.getoption("--stack") == "postgres":
        return [on_postgres]
    both = metafunc.definition.get_closest_marker("both_stacks")
    if both is None:
        return ["sqlite"]
    rarely = pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.soak])
    return ["sqlite", rarely if both.kwargs.get("soak") else on_postgres]
