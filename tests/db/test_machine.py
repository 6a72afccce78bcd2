"""The life of Runs under any order of work, lost workers, late answers, pauses and cancels: nothing lost or doubled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Engine, func, select

from db.engine import read_session, write_session
from db.errors import Conflict
from db.repositories import events, runs
from db.tables.core import CandidateRow, EvaluationRow, ProposalRow, RunRow
from db.tables.queue import JobRow
from db.transitions import runs as run_writes
from db.transitions.work import jobs, settle
from db.views.rows import Job
from evolution.types import Budget, RunConfig, RunStatus
from tests.db.world import World, from_list, problem

pytestmark = pytest.mark.both_stacks

SOURCES = [f"speed={n / 4} # {n}" for n in range(1, 12)]
KINDS = ["INCORRECT_VALUES", "BUILD_ERROR", "INTERNAL_ERROR # x", "TIMEOUT", "speed=1.25 # 5", "speed=1.25 # 6"]
BUDGET = 6


class Life(RuleBasedStateMachine):
    """Two Runs of one Problem, several workers, one of which may stop at any time."""

    engine: Engine
    examples = 0

    @initialize(order=st.permutations(SOURCES + KINDS))
    def begin(self, order: list[str]) -> None:
        type(self).examples += 1
        self.world = World(
            self.engine, propose=from_list(*order), problem=problem(f"{datetime.now(UTC)} {self.examples}")
        )
        self.runs = [
            self.world.start(Budget(candidates=BUDGET), RunConfig(in_flight=2, seed=seed)).id for seed in (0, 1)
        ]
        self.held: list[Job] = []

    @rule(count=st.integers(1, 6))
    def work(self, count: int) -> None:
        for _ in range(count):
            job = self.world.claim()
            if job is not None:
                self.world.work(job)

    @rule()
    def take(self) -> None:
        job = self.world.claim()
        if job is not None:
            self.held.append(job)

    @rule(twice=st.booleans())
    def answer(self, twice: bool) -> None:
        """The oldest claimed Job is settled, whether its lease still holds or not."""
        if self.held:
            job = self.held.pop(0)
            with read_session(self.engine) as s:
                row = s.get_one(JobRow, job.id)
                holds = row.state == "claimed" and row.lease == job.lease
            if holds:
                self.world.work(job)
            if twice or not holds:
                with write_session(self.engine) as s:
                    assert settle.fail_job(s, job, "late", ours=True) == []

    @rule(ours=st.booleans())
    def fail(self, ours: bool) -> None:
        if self.held:
            with write_session(self.engine) as s:
                settle.fail_job(s, self.held.pop(), "it broke", ours=ours)

    @rule()
    def sweep(self) -> None:
        """Every worker that holds something went silent long ago."""
        with write_session(self.engine) as s:
            s.info["now"] = lambda: datetime.now(UTC) + timedelta(hours=1)
            jobs.sweep(s)

    @rule(which=st.integers(0, 1), change=st.sampled_from(["pause", "resume", "resume", "cancel"]))
    def change(self, which: int, change: str) -> None:
        with write_session(self.engine) as s:
            try:
                getattr(run_writes, f"{change}_run")(s, self.runs[which])
            except Conflict:
                assert RunStatus(s.get_one(RunRow, self.runs[which]).status).ended

    @invariant()
    def nothing_is_doubled(self) -> None:
        if not hasattr(self, "runs"):
            return
        with read_session(self.engine) as s:
            for run_id in self.runs:
                told = [event.seq for event in events.after(s, run_id, 0, 10_000)]
                run = runs.get(s, run_id)
                assert told == list(range(1, run.last_seq + 1))
                assert 0 <= run.spend.candidates <= BUDGET
                made = s.scalars(select(CandidateRow.number).where(CandidateRow.run_id == run_id)).all()
                assert sorted(made) == list(range(1, len(made) + 1))
                waiting = s.scalars(
                    select(func.count())
                    .select_from(JobRow)
                    .where(JobRow.run_id == run_id, JobRow.kind == "advance", JobRow.state.in_(("ready", "held")))
                ).one()
                assert waiting <= 1
                if run.status.ended:
                    live = s.scalars(
                        select(JobRow.kind).where(JobRow.run_id == run_id, JobRow.state.in_(("ready", "held")))
                    ).all()
                    assert not live

    def claimed(self) -> bool:
        with read_session(self.engine) as s:
            return s.scalars(select(JobRow.id).where(JobRow.state == "claimed").limit(1)).first() is not None

    def teardown(self) -> None:
        """Left to itself, with a sweeper, everything ends and nothing stays open."""
        if not hasattr(self, "runs"):
            return
        for which in (0, 1):
            self.change(which, "resume")
        for _ in range(12):
            self.world.drain()
            if all(self.world.run(run_id).status.ended for run_id in self.runs) and not self.claimed():
                break
            self.sweep()
        with read_session(self.engine) as s:
            for run_id in self.runs:
                assert runs.get(s, run_id).status.ended
                open_proposals = s.scalars(
                    select(ProposalRow.id).where(ProposalRow.run_id == run_id, ProposalRow.outcome.is_(None))
                ).all()
                open_evaluations = s.scalars(
                    select(EvaluationRow.id).where(
                        EvaluationRow.run_id == run_id, EvaluationRow.state.in_(("building", "judging"))
                    )
                ).all()
                assert (list(open_proposals), list(open_evaluations)) == ([], [])
            stuck = s.scalars(select(JobRow.kind).where(JobRow.state.in_(("ready", "held", "claimed")))).all()
        assert not stuck


@pytest.mark.timeout(118)
def test_any_life_of_a_run(engine: Engine) -> None:
    machine = type("LifeHere", (Life,), {"engine": engine})
    few = settings(
        max_examples=settings.default.max_examples // (20 if engine.dialect.name == "sqlite" else 40),
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=few)
