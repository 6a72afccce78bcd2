"""Decisions stay quick with ten thousand Candidates behind them, in processor time (wall time is the machine's)."""

from __future__ import annotations

import random
import statistics
import time
from datetime import UTC, datetime

from sqlalchemy import Engine, insert, text

from db.engine import read_session, write_session
from db.ids import new_id
from db.queues import JobKind
from db.repositories import candidates
from db.tables import CandidateRow, EventRow, JobRow, ProposalRow, RunRow
from db.transitions.advance import advance
from evaluator.types import content_hash
from evolution.tunables import key_of
from evolution.types import Budget, RunConfig
from tests.db.world import World, from_list

COUNT = 10_000
LIMIT_S = 0.02


def fill(engine: Engine, run_id: str, problem_id: str) -> None:
    """Ten thousand judged Candidates of a Run, with their Proposals, Jobs and events."""
    rng = random.Random(0)
    moment = datetime.now(UTC)
    proposals, rows, jobs, told = [], [], [], []
    for n in range(1000, 1000 + COUNT):
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
                "times_judged": 2,
                "elite": n < 1060,
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
        row.proposals = row.candidates = 1000 + COUNT
        row.last_seq = 50_000
        s.execute(text("ANALYZE"))


def test_advance_is_quick_after_ten_thousand_candidates(engine: Engine) -> None:
    world = World(engine, propose=from_list(*(f"speed=0.5 # {n}" for n in range(3000))))
    world.build = lambda item: world_report(item)  # type: ignore[method-assign]
    config = RunConfig(in_flight=4, stagnation_candidates=100_000)
    run = world.start(budget=Budget(candidates=100_000), config=config)
    job = world.take(JobKind.ADVANCE)
    fill(engine, run.id, run.problem_id)
    took: dict[str, list[float]] = {}
    for _ in range(80):
        start = time.process_time()
        if job.kind == JobKind.ADVANCE:
            with write_session(engine) as s:
                advance(s, job)
        else:
            world.work(job)
        took.setdefault(job.kind, []).append(time.process_time() - start)
        start = time.process_time()
        found = world.claim()
        took.setdefault("claim", []).append(time.process_time() - start)
        assert found is not None
        job = found
    start = time.process_time()
    with read_session(engine) as s:
        assert len(candidates.list(s, run.id, limit=50)) == 50
    took["page"] = [time.process_time() - start]
    figures = {kind: f"{statistics.median(times) * 1000:.1f} ms" for kind, times in took.items()}
    print(figures)
    assert statistics.median(took[JobKind.ADVANCE]) < LIMIT_S, figures


def world_report(item: object) -> object:
    from db.work import BuildWork
    from evaluator.types import BuildReport

    assert isinstance(item, BuildWork)
    return BuildReport(candidate_hash=item.candidate.hash, signature=item.candidate.hash)
