"""A world in which a Baseline compiles for long, and is faster than what was timed before."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from db.engine import read_session, write_session
from db.queues import JobKind
from db.repositories import baselines
from db.repositories.work.jobs import payload
from db.tables.core import CandidateRow
from db.transitions.work import settle
from db.views.rows import Job
from db.views.work import BaselineWork
from evaluator.types import BaselineReport, Candidate, DeviceKind, Evaluation
from tests.db.world import World, baseline, passed


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
        speed = float(c.source.split("speed=")[1].split()[0])
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


def look(world: LateWorld) -> Job:
    """Claim the look for late Baselines, before anything else goes on."""
    job = world.claim("cpu")
    assert job is not None
    assert job.kind == JobKind.BASELINE
    return job


def overtake(world: LateWorld, report: BaselineReport) -> None:
    world.settle_baseline(look(world), report)
