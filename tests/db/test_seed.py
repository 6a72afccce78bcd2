"""The benchmark's seeder knows the tables as they are: what it writes can be read, and is consistent."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import Engine, func, select

from bench.seed.__main__ import seed
from bench.seed.load import SeedError
from bench.seed.plan import SCALES, Scale, plan, zipf
from db.engine import check, read_session
from db.repositories import candidates, evaluations, events, history, leaderboard, problems, proposals, runs
from db.tables.base import Base
from db.tables.core import CandidateRow, EvaluationRow, RunRow
from db.views.rows import CandidateView
from evaluator.types import Stage, Verdict

TINY = Scale(candidates=400, runs=20, problems=12, projects=3, largest_run=150, largest_project=250)


@pytest.mark.parametrize("name", sorted(SCALES))
def test_sizes_fall_off_and_add_up(name: str) -> None:
    scale = SCALES[name]
    sizes = zipf(scale.largest_run, scale.runs, scale.candidates)
    assert sum(sizes) == scale.candidates
    assert sizes[0] == scale.largest_run
    assert len(sizes) == scale.runs
    assert min(sizes) >= 1
    planned = plan(scale, random.Random(1))
    own = sum(run.size for run in planned if run.project == 0)
    assert abs(own - scale.largest_project) < scale.largest_project * 0.01
    assert {run.project for run in planned} == set(range(scale.projects))
    assert max(run.problem for run in planned) < scale.problems


def test_what_is_seeded_can_be_read(engine: Engine) -> None:
    assert seed(engine, TINY) > 0
    check(engine)
    with read_session(engine) as s:
        largest = s.scalars(select(RunRow.id).order_by(RunRow.candidates.desc()).limit(1)).one()
        run = runs.get(s, largest)
        assert run.project_id == "default"
        assert run.spend.candidates == TINY.largest_run
        seqs = [event.seq for event in events.after(s, largest, 0, limit=10_000)]
        assert seqs == list(range(1, run.last_seq + 1))
        found = candidates.list(s, largest, limit=200)
        assert [c.number for c in found] == list(range(TINY.largest_run, 0, -1))
        assert len(proposals.list(s, largest, limit=1000)) == TINY.largest_run * 11 // 10
        said = next(p for p in proposals.list(s, largest, limit=50) if p.arm.proposer == "model" and p.candidate_id)
        whole = proposals.get(s, said.id)
        assert whole.prompt.startswith("You write fast GPU kernels.")
        assert "class ModelNew" in whole.reply
        assert len(problems.list(s, "default", limit=100)) >= 3
        assert sum(tally.number for tally in history.tallies(s, largest) if tally.kind == "judge") == judged_of(found)
        assert history.milestones(s, largest)[-1].candidate_id == run.best_id
        passed = next(c for c in found if c.verdict is Verdict.PASSED)
        (judged, *_) = evaluations.for_candidate(s, passed.id)
        ratio = judged.speedup("fastest")
        assert ratio is not None
        assert passed.speedup is not None
        assert ratio.value == pytest.approx(passed.speedup.value)
        failed = next(c for c in found if c.verdict not in (None, Verdict.PASSED))
        assert evaluations.for_candidate(s, failed.id)[0].verdict is failed.verdict
        for entry in leaderboard.rows(s, "default"):
            stages = [evaluation.stage for evaluation in evaluations.for_candidate(s, entry.candidate_id)]
            assert stages[-1] is Stage.CONFIRM
        total = s.scalar(select(func.count()).select_from(CandidateRow))
        judgings = s.scalar(select(func.count()).select_from(EvaluationRow).where(EvaluationRow.kind == "judge"))
        assert total == judgings == TINY.candidates
        with pytest.raises(SeedError, match="empty"):
            seed(engine, TINY)


def judged_of(found: tuple[CandidateView, ...]) -> int:
    return sum(1 for candidate in found if candidate.verdict is not None)


def test_every_index_is_back(engine: Engine) -> None:
    seed(engine, TINY)
    wanted = {index.name for table in Base.metadata.sorted_tables for index in table.indexes}
    query = (
        "SELECT indexname FROM pg_indexes"
        if engine.dialect.name == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'index'"
    )
    with engine.connect() as connection:
        assert wanted <= {row[0] for row in connection.exec_driver_sql(query)}
