"""Record the statements of a request, their times, and the database's plan of the slow ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event
from starlette.testclient import TestClient

from runtime.settings import Settings
from service.app import create_app

PLAN_LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement as it was sent."""

    sql: str
    parameters: Any
    ms: float


@contextmanager
def recording(engine: Engine) -> Iterator[list[Statement]]:
    """Record every statement that goes to the database within the block."""
    found: list[Statement] = []

    def before(_c: Any, _cursor: Any, _sql: str, _p: Any, context: Any, _many: bool) -> None:
        context.began = time.perf_counter()

    def after(_c: Any, _cursor: Any, sql: str, parameters: Any, context: Any, _many: bool) -> None:
        found.append(Statement(sql=sql, parameters=parameters, ms=(time.perf_counter() - context.began) * 1000))

    event.listen(engine, "before_cursor_execute", before)
    event.listen(engine, "after_cursor_execute", after)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", before)
        event.remove(engine, "after_cursor_execute", after)


def plan(engine: Engine, statement: Statement) -> list[str]:
    """Return the lines of the database's plan, run once more with figures if it can."""
    prefix = "EXPLAIN (ANALYZE, BUFFERS) " if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(prefix + statement.sql, statement.parameters).all()
    return [str(row[-1]) for row in rows][:PLAN_LINES]


def explain(engine: Engine, urls: Sequence[str]) -> dict[str, Any]:
    """Return the statements of each address with their times, and the plan of the slowest."""
    app = create_app(Settings(database_url=str(engine.url)), engine=engine, send_nudges=lambda queues: None)
    report: dict[str, Any] = {}
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for url in urls:
            client.get(url)
            with recording(engine) as statements:
                began = time.perf_counter()
                client.get(url)
                whole_ms = (time.perf_counter() - began) * 1000
            slowest = sorted(statements, key=lambda one: -one.ms)[:2]
            report[url] = {
                "whole_ms": round(whole_ms, 1),
                "statements": len(statements),
                "in_database_ms": round(sum(one.ms for one in statements), 1),
                "slowest": [
                    {"ms": round(one.ms, 2), "sql": " ".join(one.sql.split())[:1500], "plan": plan(engine, one)}
                    for one in slowest
                    if one.sql.lstrip().upper().startswith(("SELECT", "WITH"))
                ],
            }
    return report
