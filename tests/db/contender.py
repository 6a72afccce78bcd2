"""One of several processes that write to the same database at once: `python -m tests.db.contender URL RUN`."""

from __future__ import annotations

import sys

from sqlalchemy import Engine

from db.engine import make_engine, write_session
from db.queues import JobKind
from db.transitions import jobs
from db.transitions.events import emit
from db.transitions.locks import lock_run

COUNTED, TOLD = 100, 50


def count_up(engine: Engine, run_id: str) -> None:
    """Read, add one in Python, write: what loses updates wherever a write session does not lock first."""
    for _ in range(COUNTED):
        with write_session(engine) as s:
            row = lock_run(s, run_id)
            row.spent_tokens = row.spent_tokens + 1


def tell(engine: Engine, run_id: str) -> None:
    """Append events; every fifth transaction is rolled back, and must leave no gap."""
    for n in range(TOLD):
        try:
            with write_session(engine) as s:
                emit(s, run_id, "test.told", n=n)
                if n % 5 == 4:
                    raise InterruptedError
        except InterruptedError:
            continue


def claim_all(engine: Engine) -> None:
    """Claim Jobs until none is left, and print their ids."""
    while True:
        with write_session(engine) as s:
            job = jobs.claim(s, ["cpu"], "contender", 600.0)
        if job is None:
            break
        assert job.kind == JobKind.ADMIT
        print(job.id)


if __name__ == "__main__":
    _, url, run_id = sys.argv
    engine = make_engine(url)
    count_up(engine, run_id)
    tell(engine, run_id)
    claim_all(engine)
    engine.dispose()
