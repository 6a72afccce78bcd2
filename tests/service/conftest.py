"""A service on a database of its own, and a world whose workers are played by the test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, Table
from starlette.testclient import TestClient

from db.engine import make_engine, read_session, write_session
from db.tables.base import Base
from evaluator.problem import read_problem
from runtime.nudge import nudge
from runtime.settings import Settings
from service.app import create_app
from tests.db.world import World, from_list
from tests.support.stacks import Stack

BASE_URL = "http://127.0.0.1:8000"
PROBLEM = '''"""Softmax over rows."""
import torch
import torch.nn as nn

WORKLOADS = [
    {"name": "small", "rows": 4, "device": "cpu"},
    {"name": "hidden", "rows": 33, "device": "cpu", "held_out": True},
]


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs(rows=4):
    return [torch.randn(rows, 64)]
'''
# The world's judge reads verdicts and speeds from the source.
SOURCES = (
    "SPEED = 'speed=1.6 '\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    "        return torch.softmax(x, -1)\n",
    "INCORRECT_VALUES",
    "SPEED = 'speed=2.4 '\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    '        return torch.softmax(x, -1)  # <script>alert("x")</script>\n',
    "BUILD_ERROR",
    "SPEED = 'speed=0.7 '\nclass ModelNew: ...\n",
)


_NUDGES: list[str] = []
Rows = list[tuple[Table, list[dict[str, Any]]]]


@pytest.fixture(scope="session")
def settings(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    folder = tmp_path_factory.mktemp("service")
    with stack.database(folder) as url:
        yield Settings(database_url=url, data_dir=folder, redis_url=stack.redis_url, event_poll_s=0.02)


@pytest.fixture(scope="session")
def database(settings: Settings) -> Iterator[Engine]:
    """One migrated database for the whole session; `engine` empties it before every test."""
    made = make_engine(settings.database_url)
    yield made
    made.dispose()


@pytest.fixture(scope="session")
def app(stack: Stack, settings: Settings, database: Engine) -> FastAPI:
    """One application for the whole session: making one takes a third of a second."""

    def send(queues: Iterable[str]) -> None:
        names = list(queues)
        _NUDGES.extend(names)
        if stack.has_broker:
            assert nudge(settings.redis_url, names)

    return create_app(settings, engine=database, send_nudges=send)


@pytest.fixture(scope="session")
def session_client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=BASE_URL) as made:
        yield made


@pytest.fixture
def engine(database: Engine) -> Engine:
    """The database, emptied."""
    with write_session(database) as s:
        for table in reversed(Base.metadata.sorted_tables):
            if table.name == "audit_log":
                continue  # append-only
            s.execute(table.delete() if table.name != "projects" else table.delete().where(table.c.id != "default"))
    return database


@pytest.fixture
def nudges() -> list[str]:
    """The queues that the service nudged."""
    _NUDGES.clear()
    return _NUDGES


@pytest.fixture
def client(session_client: TestClient, engine: Engine) -> TestClient:
    return session_client


def rows_of(engine: Engine) -> Rows:
    """Return all that a database holds."""
    with read_session(engine) as s:
        tables = Base.metadata.sorted_tables
        return [(table, [dict(row) for row in s.execute(table.select()).mappings()]) for table in tables]


def put_rows(engine: Engine, found: Rows) -> None:
    """Put what `rows_of` returned into an empty database."""
    with write_session(engine) as s:
        for table, rows in found:
            wanted = [row for row in rows if table.name != "projects" or row["id"] != "default"]
            if wanted and table.name != "audit_log":
                s.execute(table.insert(), wanted)


def world_of(engine: Engine) -> World:
    return World(engine=engine, propose=from_list(*SOURCES), problem=read_problem(PROBLEM, "softmax"))


@pytest.fixture
def world(engine: Engine) -> World:
    """Workers and a judge; `world.start()` makes a Run, `world.drain()` works until it has ended."""
    return world_of(engine)


@pytest.fixture(scope="session")
def played(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Rows]:
    """A Run that has ended with a Champion: its id, and all that the database then holds. Playing one takes seconds."""
    with stack.database(tmp_path_factory.mktemp("played")) as url:
        made = make_engine(url)
        try:
            world = world_of(made)
            run = world.start()
            world.drain()
            assert world.run(run.id).champion_id is not None
            return run.id, rows_of(made)
        finally:
            made.dispose()


@pytest.fixture
def finished(played: tuple[str, Rows], engine: Engine) -> str:
    """The id of a Run that has ended with a Champion."""
    run_id, found = played
    put_rows(engine, found)
    return run_id
