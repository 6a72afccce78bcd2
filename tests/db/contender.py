"""One of several processes that write to the same database at once: `python contender.py URL WHAT RUN COUNT`."""

from __future__ import annotations

import sys

from db.engine import make_engine, write_session
from db.queues import JobKind
from db.transitions import jobs
from db.transitions.events import emit
from db.transitions.locks import lock_run


def count_up(url: str, run_id: str, count: int) -> None:
    """Read, add one in Python, write: what loses updates wherever a write session does not lock first."""
    engine = make_engine(url)
    for _ in range(count):
        with write_session(engine) as s:
            row = lock_run(s, run_id)
            row.spent_tokens = row.spent_tokens + 1
    engine.dispose()


def tell(url: str, run_id: str, count: int) -> None:
    """Append events; every fifth transaction is rolled back, and must leave no gap."""
    engine = make_engine(url)
    for n in range(count):
        try:
            with write_session(engine) as s:
                emit(s, run_id, "test.told", n=n)
                if n % 5 == 4:
                    raise InterruptedError
        except InterruptedError:
            continue
    engine.dispose()


def claim_all(url: str) -> None:
    """Claim Jobs until none is left, and print their ids."""
    engine = make_engine(url)
    while True:
        with write_session(engine) as s:
            job = jobs.claim(s, ["cpu"], "contender", 600.0)
        if job is None:
            break
        assert job.kind == JobKind.ADMIT
        print(job.id)
    engine.dispose()


if __name__ == "__main__":
    _, url, what, run_id, count = sys.argv
    match what:
        case "count":
            count_up(url, run_id, int(count))
        case "tell":
            tell(url, run_id, int(count))
        case "claim":
            claim_all(url)
