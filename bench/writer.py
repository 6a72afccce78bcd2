"""Settle Jobs as workers do, at a given rate: `python -m bench.writer URL --seconds S [--per-second N]`.

It works on the largest Run of the database and on a new one of its own, through the same transitions as real workers:
claim, settle, events. Judges and models take no time here. `--start N` only starts N Runs, and prints their ids; `--on
ID ...` then works on these.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import sys
import time

from sqlalchemy import Engine, select

from db.engine import make_engine, write_session
from db.tables.core import RunRow
from db.transitions.work.enqueue import enqueue_advance
from db.transitions.work.locks import lock_run
from db.views.work import ProposalResult, ProposeWork
from evaluator.problem import read_problem
from evaluator.schema import to_json
from evolution.types import Budget, RunConfig, RunStatus
from tests.db.world import World, candidate_result

PROBLEM = '''"""Softmax, written to while it is read."""
import torch
import torch.nn as nn

WORKLOADS = [{"name": "small", "rows": 4, "device": "cpu"}]


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs(rows=4):
    return [torch.randn(rows, 64)]
'''
ENDLESS = RunConfig(stagnation_candidates=10**9, in_flight=4)
PLENTY = Budget(candidates=10**9)


def reopen_largest(engine: Engine) -> str:
    """Make the largest Run of `default` a running one again; return its id."""
    with write_session(engine) as s:
        largest = s.scalars(
            select(RunRow.id).where(RunRow.project_id == "default").order_by(RunRow.candidates.desc()).limit(1)
        ).one()
        run = lock_run(s, largest)
        run.status, run.end_reason, run.ended_at, run.message = RunStatus.RUNNING, None, None, ""
        run.config, run.budget = to_json(ENDLESS), to_json(PLENTY)
        enqueue_advance(s, run)
    return largest


def make_world(engine: Engine) -> World:
    """Return a worker with an endless supply of Candidates."""
    numbers = itertools.count(time.time_ns())

    def propose(work: ProposeWork) -> ProposalResult:
        number = next(numbers)
        verdict = "INCORRECT_VALUES" if number % 3 == 0 else f"speed={0.5 + number % 1000 / 999}"
        return candidate_result(f"{verdict} # {number}")

    problem = read_problem(PROBLEM, "softmax")
    return World(engine, propose=propose, promote=lambda work, speedup: False, problem=problem)


def write(world: World, seconds: float, per_second: float) -> int:
    """Settle Jobs for a while; return their number."""
    began, done = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        job = world.claim() if done < passed * per_second else None
        if job is None:
            time.sleep(0.01)
            continue
        world.work(job)
        world.done.clear()
        done += 1
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--per-second", type=float, default=12.0)
    parser.add_argument("--start", type=int)
    parser.add_argument("--on", nargs="*")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    engine = make_engine(options.url)
    world = make_world(engine)
    if options.start:
        print(json.dumps([world.start(budget=PLENTY, config=ENDLESS).id for _ in range(options.start)]))
        return 0
    if not options.on:
        reopen_largest(engine)
        world.start(budget=PLENTY, config=ENDLESS)
    print(write(world, options.seconds, options.per_second))
    engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())
