"""Several processes that write to the same database at once: `python -m tests.db.contender URL RUN COUNT`.

They are forked when all is imported, which takes longer than what they do, and have nothing open in common.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

from sqlalchemy import Engine

from db.engine import make_engine, write_session
from db.queues import JobKind
from db.transitions.events import emit
from db.transitions.work import jobs
from db.transitions.work.locks import lock_run

COUNTED, TOLD = 60, 30


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
        os.write(sys.stdout.fileno(), f"{job.id}\n".encode())  # at once, so that lines of several stay whole


def contend(url: str, run_id: str) -> None:
    engine = make_engine(url)
    count_up(engine, run_id)
    tell(engine, run_id)
    claim_all(engine)
    engine.dispose()


if __name__ == "__main__":
    _, url, run_id, count = sys.argv
    fork = multiprocessing.get_context("fork")
    started = [fork.Process(target=contend, args=(url, run_id)) for _ in range(int(count))]
    for process in started:
        process.start()
    for process in started:
        process.join()
    sys.exit(any(process.exitcode for process in started))
