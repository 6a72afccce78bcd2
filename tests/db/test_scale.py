"""A decision of a long Run costs the database little more than one of a short Run. Times: `make bench-advance`."""

from __future__ import annotations

import random
import sqlite3
import statistics
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, event, insert, text

from db.engine import read_session, write_session
from db.ids import new_id
from db.queues import JobKind
from db.repositories import candidates
from db.tables.core import CandidateRow, EventRow, ProposalRow, RunRow
from db.tables.queue import JobRow
from db.views.rows import Job
from evaluator.types import content_hash
from evolution.tunables import key_of
from evolution.types import Budget, RunConfig
from tests.db.world import World, from_list

FEW, MANY = range(1000, 1200), range(5000, 6500)


def fill(engine: Engine, run_id: str, problem_id: str, numbers: range) -> None:
    """Judged Candidates of a Run, with their Proposals, Jobs and events."""
    rng = random.Random(numbers.start)
    moment = datetime.now(UTC)
    proposals, rows, jobs, told = [], [], [], []
    for n in numbers:
        proposal, candidate = new_id("prop"), new_id("cand")
        arm = {"proposer": "synthesiser", "operator": "create", "model": "", "variant": "default", "island": n % 2}
        done = {"created_at": moment, "run_id": run_id, **arm}
        proposals.append(
            {
                **done,
                "id": proposal,
                "number": n,
                "arm_number": n,
                "parents": [],
                "hint": {},
                "outcome": "candidate",
                "candidate_id": candidate,
            }
        )
        passed = rng.random() < 0.6
        rows.append(
            {
                **done,
                "id": candidate,
                "problem_id": problem_id,
                "proposal_id": proposal,
                "number": n,
                "hash": content_hash(str(n)),
                "language": "cpp",
                "source": f"speed={n}" + "x" * 2000,
                "parents": [],
                "family": content_hash(str(n % 50)),
                "tunables": {"BLOCK": list(range(64)), "UNROLL": list(range(64))},
                "configuration": {"BLOCK": n % 64, "UNROLL": n // 64 % 64},
                "configuration_key": key_of({"BLOCK": n % 64, "UNROLL": n // 64 % 64}),
                "signature": content_hash("s", str(n)),
                "niche": f"n{n % 30}",
                "verdict": "PASSED" if passed else "INCORRECT_VALUES",
                "stage": "timing",
                "speedup": rng.uniform(0.2, 1.2) if passed else None,
                "speedup_low": 0.2,
                "speedup_high": 1.3,
                "elite": n < 1060,  # sixty, however many there are
            }
        )
        for kind in ("propose", "build", "judge"):
            jobs.append(
                {
                    "id": new_id("job"),
                    "kind": kind,
                    "queue": kind,
                    "run_id": run_id,
                    "subject_id": f"{kind}{n}",
                    "ordinal": 1,
                    "project_id": "default",
                    "state": "done",
                    "nudged_at": moment,
                    "created_at": moment,
                }
            )
        told.append({"run_id": run_id, "seq": 10_000 + n, "kind": "x", "data": {}, "created_at": moment})
    with write_session(engine) as s:
        for table, values in ((ProposalRow, proposals), (CandidateRow, rows), (JobRow, jobs), (EventRow, told)):
            s.execute(insert(table), values)
        row = s.get_one(RunRow, run_id)
        row.proposals = row.candidates = numbers.stop
        row.last_seq = 10_000 + numbers.stop
        s.execute(text("ANALYZE"))  # as the service does


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_decision_reads_little_of_a_long_run(engine: Engine) -> None:
    """Work is what SQLite's machine does, in its own instructions: the same on every computer, however busy."""
    world = World(engine, propose=from_list(*(f"speed=0.5 # {n}" for n in range(3000))))
    world.build = lambda item: world_report(item)  # type: ignore[method-assign]
    config = RunConfig(in_flight=4, stagnation_candidates=100_000)
    run = world.start(budget=Budget(candidates=100_000), config=config)
    job = world.take(JobKind.ADVANCE)
    fill(engine, run.id, run.problem_id, FEW)
    job, few = work_done(world, job)
    fill(engine, run.id, run.problem_id, MANY)
    _, many = work_done(world, job)
    assert set(many) >= {"advance", "propose", "build", "judge", "claim", "page"}
    for step, hundreds in many.items():
        # Linear in a Run is only what looks its Candidates up by family: in one index, ten instructions for each.
        assert hundreds < few.get(step, 0) + 0.2 * len(MANY), (step, few, many)


def work_done(world: World, job: Job) -> tuple[Job, dict[str, float]]:
    """The next Job after forty more, and what each kind of step cost in the middle, in hundreds of instructions."""
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1

    def watch(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(tick, 100)

    def cost(name: str, before: int) -> None:
        took.setdefault(name, []).append(ticks - before)

    took: dict[str, list[int]] = {}
    event.listen(world.engine, "checkout", watch)
    try:
        for _ in range(40):
            before = ticks
            world.work(job)
            cost(job.kind, before)
            before = ticks
            found = world.claim()
            cost("claim", before)
            assert found is not None
            job = found
        before = ticks
        with read_session(world.engine) as s:
            assert len(candidates.list(s, job.run_id, limit=50)) == 50
        cost("page", before)
    finally:
        event.remove(world.engine, "checkout", watch)
    return job, {name: statistics.median(times) for name, times in took.items()}


def world_report(item: object) -> object:
    from db.views.work import BuildWork
    from evaluator.types import BuildReport

    assert isinstance(item, BuildWork)
    return BuildReport(candidate_hash=item.candidate.hash, signature=item.candidate.hash)
