"""Baselines that compile for long join a Run later, and elites that they overtake are judged again."""

from __future__ import annotations

import io
from dataclasses import replace

from sqlalchemy import Engine, select

from db.engine import read_session, write_session
from db.queues import JobKind
from db.recording import export_run
from db.replay import replay_archive
from db.repositories import baselines, events
from db.repositories.work.jobs import payload
from db.tables.core import CandidateRow, EvaluationRow
from db.tables.queue import JobRow
from db.transitions.work import settle
from db.views.rows import Job
from db.views.work import BaselineWork, JudgeWork
from evaluator.types import BaselineReport, Candidate, DeviceKind, Evaluation
from evolution.types import Budget, RunConfig, RunStatus
from tests.db.world import World, baseline, from_list, passed


class LateWorld(World):
    """Eager is timed first; `compile` follows when a test says so, twice as fast."""

    def early(self) -> BaselineReport:
        whole = baseline(self.problem)
        return replace(whole, times=tuple(t for t in whole.times if t.mode == "eager"), pending=("compile",))

    def settle_baseline(self, job: Job, report: BaselineReport) -> list[str]:
        with write_session(self.engine) as s:
            return settle.settle_baseline(s, job, report)

    def judge(self, c: Candidate) -> Evaluation:
        """Judge against the Baselines so far."""
        with read_session(self.engine) as s:
            report = baselines.newest(s, self.problem_id, DeviceKind.CPU)
        assert report is not None
        speed = float(c.source.split("speed=")[1])
        found = passed(self.problem, c, speed if not report.pending else 2 * speed)
        fastest = report.fastest("small")
        timed = tuple(replace(m, baselines=(fastest,)) for m in found.measurements)
        small = [replace(one, workload="small") for one in found.speedups if one.against == "fastest"]
        return replace(found, measurements=timed, speedups=(*found.speedups, *small))

    def work(self, job: Job) -> list[str]:
        """Find that nothing compiled since, where it is not the turn of a test."""
        with read_session(self.engine) as s:
            item = payload(s, job)
        if isinstance(item, BaselineWork) and item.baseline is not None and item.baseline.pending:
            return self.settle_baseline(job, item.baseline)
        return super().work(job)

    @property
    def problem_id(self) -> str:
        with read_session(self.engine) as s:
            return s.scalars(select(CandidateRow.problem_id)).first() or ""


def late_world(engine: Engine, *sources: str) -> tuple[LateWorld, str]:
    world = LateWorld(engine, propose=from_list(*sources))
    run = world.start(Budget(candidates=len(sources)), RunConfig(in_flight=1))
    job = world.take(JobKind.BASELINE)
    world.settle_baseline(job, world.early())
    return world, run.id


def test_a_judgement_waits_for_baselines_and_a_build_does_not(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    run = world.start(config=RunConfig(in_flight=1))
    waiting = world.take(JobKind.BASELINE)
    assert world.run(run.id).status is RunStatus.RUNNING
    with read_session(engine) as s:
        (ready,) = s.scalars(select(JobRow).where(JobRow.state == "ready"))
        assert ready.kind == JobKind.JUDGE
    assert world.claim() is None
    world.work(waiting)
    judging = world.claim("cpu")
    assert judging is not None
    assert judging.kind == JobKind.JUDGE


def test_a_mode_that_still_compiles_is_looked_for_again(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    job = world.take(JobKind.BASELINE)
    with read_session(engine) as s:
        work = payload(s, job)
        seen = [e.data for e in events.after(s, run_id, 0, limit=100) if e.kind == "baseline.timed"]
    assert isinstance(work, BaselineWork)
    assert work.baseline is not None
    assert work.baseline.pending == ("compile",)
    assert [e["pending"] for e in seen] == [["compile"]]
    for _ in range(5):  # nothing new: no event
        assert world.settle_baseline(job, work.baseline) == ["cpu"]
        job = world.take(JobKind.BASELINE)
    with read_session(engine) as s:
        open_jobs = select(JobRow).where(JobRow.kind == JobKind.BASELINE, JobRow.state.in_(("ready", "claimed")))
        assert len(s.scalars(open_jobs).all()) == 1
        again = [e for e in events.after(s, run_id, 0, limit=100) if e.kind == "baseline.timed"]
    assert len(again) == 1


def test_judgements_and_looks_for_late_baselines_take_turns(engine: Engine) -> None:
    world = LateWorld(engine, propose=from_list("speed=1.5", "speed=1.4", "speed=1.3"))
    world.start(Budget(candidates=3), RunConfig(in_flight=3))
    world.settle_baseline(world.take(JobKind.BASELINE), world.early())
    kinds = []
    for _ in range(4):
        claimed = world.claim("cpu")
        assert claimed is not None
        kinds.append(claimed.kind)
        if claimed.kind == JobKind.BASELINE:
            with read_session(engine) as s:
                work = payload(s, claimed)
            assert isinstance(work, BaselineWork)
            assert work.baseline is not None
            world.settle_baseline(claimed, work.baseline)
        else:
            world.work(claimed)
    assert sorted(kinds) == [JobKind.BASELINE, JobKind.JUDGE, JobKind.JUDGE, JobKind.JUDGE]


def test_elites_are_judged_again_where_a_later_baseline_is_faster(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5", "speed=0.3")
    for _ in range(2):
        world.work(world.take(JobKind.JUDGE))
    assert [c.speedup for c in _candidates(engine, run_id)] == [3.0, 0.6]
    spend = world.run(run_id).spend
    looking = world.claim("cpu")
    assert looking is not None
    world.settle_baseline(looking, baseline(world.problem))
    again = world.take(JobKind.JUDGE)
    with read_session(engine) as s:
        work = payload(s, again)
    assert isinstance(work, JudgeWork)
    assert work.baseline is not None
    assert work.baseline.fastest("small").mode == "compile"
    world.work(again)
    assert [c.speedup for c in _candidates(engine, run_id)] == [1.5, 0.6]  # the slow one cannot have become fast
    world.drain()
    assert world.run(run_id).spend.candidates == spend.candidates
    with read_session(engine) as s:
        kinds = s.scalars(select(EvaluationRow.kind).where(EvaluationRow.run_id == run_id)).all()
    assert sorted(kinds) == ["confirm", "judge", "judge", "judge"]


def test_what_was_judged_while_a_baseline_came_is_judged_again(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    judging = world.take(JobKind.JUDGE)
    looking = world.take(JobKind.BASELINE)
    with read_session(engine) as s:
        work = payload(s, judging)
    assert isinstance(work, JudgeWork)
    early = world.judge(work.candidate)
    world.settle_baseline(looking, baseline(world.problem))
    with write_session(engine) as s:
        settle.settle_judge(s, judging, early)
    world.drain()
    assert [c.speedup for c in _candidates(engine, run_id)] == [1.5]


def test_a_mode_that_never_compiles_does_not_end_the_run(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    for _ in range(3):
        looking = world.take(JobKind.BASELINE)
        with write_session(engine) as s:
            settle.fail_job(s, looking, "the judge ended without an answer", ours=True)
    world.drain()
    run = world.run(run_id)
    assert run.status is RunStatus.FINISHED
    with read_session(engine) as s:
        report = baselines.newest(s, world.problem_id, DeviceKind.CPU)
    assert report is not None
    assert report.pending == ()
    assert "without an answer" in report.skipped["compile"]


def test_a_recorded_run_with_late_baselines_replays(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5", "speed=0.3")
    world.work(world.take(JobKind.JUDGE))
    world.settle_baseline(world.take(JobKind.BASELINE), baseline(world.problem))
    world.drain()
    out = io.BytesIO()
    with read_session(engine) as s:
        export_run(s, run_id, out)
    assert replay_archive(out.getvalue()).differences == []


def _candidates(engine: Engine, run_id: str) -> list[CandidateRow]:
    with read_session(engine) as s:
        return list(s.scalars(select(CandidateRow).where(CandidateRow.run_id == run_id).order_by(CandidateRow.number)))
