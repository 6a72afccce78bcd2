"""Fair claiming on a simulated fleet: four devices, a virtual clock, nobody sleeps."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert
from sqlalchemy.orm import Session

from db.engine import read_session, write_session
from db.ids import new_id
from db.queues import BUILD, CONTROL, PROPOSE, JobKind
from db.repositories import candidates
from db.tables.core import BaselineRow, Project, RunRow
from db.tables.queue import JobRow
from db.transitions.access.projects import change_project, charge
from db.transitions.work.fair_queueing import KEEP_AGAIN_S, KEEP_S, charge_actual
from db.views.access import Quota
from db.views.rows import Job
from evolution.types import Budget, RunConfig
from tests.db.world import World, from_list, problem

DEVICE = "cpu"
SLOT_S = 60.0
"""Seconds to judge one Candidate: the longest Job there is here."""
TAKES_S = {
    JobKind.ADMIT: 20.0,
    JobKind.BASELINE: 45.0,
    JobKind.JUDGE: SLOT_S,
    JobKind.CONFIRM: SLOT_S,
    JobKind.PROPOSE: 4.0,
    JobKind.BUILD: 2.0,
    JobKind.ADVANCE: 0.01,
}
WORKERS = {DEVICE: 4, PROPOSE: 4, BUILD: 2, CONTROL: 1}
START = datetime(2027, 3, 1, tzinfo=UTC)


@dataclass
class Fleet:
    """Workers that take Jobs as soon as they are free. What a Job does happens at its end, by `world`.

    Jobs without a Run are a backlog made by hand: they take their time and do nothing.
    """

    engine: Engine
    world: World
    at_s: float = 0.0
    waits_s: list[tuple[Job, float]] = field(default_factory=list)
    served_s: dict[str, float] = field(default_factory=dict)
    _busy: list[tuple[float, int, str, str, Job | None]] = field(default_factory=list)
    _idle: dict[str, list[str]] = field(
        default_factory=lambda: {queue: [f"{queue}-{n}" for n in range(count)] for queue, count in WORKERS.items()}
    )
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def now(self) -> datetime:
        return START + timedelta(seconds=self.at_s)

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Every session of the test sees the fleet's time."""

        def set_clock(session: Session, _: Any) -> None:
            session.info["now"] = self.now

        event.listen(Session, "after_transaction_create", set_clock)
        try:
            yield
        finally:
            event.remove(Session, "after_transaction_create", set_clock)

    def stagger(self, *free_at_s: float) -> None:
        """Devices that come free at these moments, busy with something from before."""
        for moment in free_at_s:
            heapq.heappush(self._busy, (moment, next(self._numbers), DEVICE, self._idle[DEVICE].pop(), None))

    def step(self) -> bool:
        """Hand out all that can be, then go on to the next end of a Job. False where nothing is left."""
        for queue, idle in self._idle.items():
            for worker in tuple(idle):
                job = self.world.claim(queue, worker=worker, lease_s=1e6)
                if job is None:
                    break  # what is not there for one is not there for the next
                idle.remove(worker)
                self._begin(queue, worker, job)
        if not self._busy:
            return False
        self.at_s, _, queue, worker, job = heapq.heappop(self._busy)
        self._idle[queue].append(worker)
        if job is not None:
            self._end(job)
        return True

    def _begin(self, queue: str, worker: str, job: Job) -> None:
        takes = TAKES_S[JobKind(job.kind)]
        with read_session(self.engine) as s:
            ready_at = s.get_one(JobRow, job.id).created_at
            if job.kind == JobKind.JUDGE and job.run_id is not None:  # it waits for Baselines, not for a device
                baseline = s.get_one(BaselineRow, s.get_one(RunRow, job.run_id).baseline_id)
                ready_at = max(ready_at, baseline.settled_at or ready_at)
        self.waits_s.append((job, (self.now() - ready_at).total_seconds()))
        if queue == DEVICE:
            self.served_s[job.project_id] = self.served_s.get(job.project_id, 0.0) + takes
        heapq.heappush(self._busy, (self.at_s + takes, next(self._numbers), queue, worker, job))

    def _end(self, job: Job) -> None:
        if job.subject_id.startswith("backlog"):
            with write_session(self.engine) as s:
                row = s.get_one(JobRow, job.id)
                row.state, row.done_at = "done", self.now()
        else:
            self.world.work(job)
        with write_session(self.engine) as s:
            charge_actual(s, job)


def make_project(engine: Engine, name: str, weight: float = 1.0) -> str:
    with write_session(engine) as s:
        s.add(Project(id=name, name=name, weight=weight, created_at=START))
    return name


def backlog(engine: Engine, project: str, number: int, *, queue: str = DEVICE, kind: JobKind = JobKind.JUDGE) -> None:
    """Thousands of ready Jobs, at once."""
    rows = [
        {
            "id": new_id("job"), "kind": kind, "queue": queue, "subject_id": f"backlog_{project}_{queue}_{n}"[-40:],
            "ordinal": n, "project_id": project, "state": "ready", "attempts": 0, "error": "", "nudged_at": START,
            "created_at": START,
        }
        for n in range(number)
    ]  # fmt: skip
    with write_session(engine) as s:
        s.execute(insert(JobRow), rows)


def first_verdict_s(fleet: Fleet, project: str) -> float:
    """Return the seconds until the first Candidate of a Run that `project` starts now is judged."""
    began = fleet.at_s
    run = fleet.world.start(project=project, budget=Budget(candidates=2), config=RunConfig(in_flight=1))
    for _ in range(3000):
        assert fleet.step()
        with read_session(fleet.engine) as s:
            if any(candidate.verdict is not None for candidate in candidates.list(s, run.id)):
                return fleet.at_s - began
    raise AssertionError("no Candidate was judged")


@pytest.fixture
def fleet(engine: Engine) -> Iterator[Fleet]:
    made = Fleet(engine, World(engine, propose=from_list("speed=1.5", "speed=1.6")))
    with made.clock():
        yield made


BUSY = {"come free together": (60.0, 60.0, 60.0, 60.0), "come free in turn": (15.0, 30.0, 45.0, 60.0)}


@pytest.mark.parametrize(
    "busy",
    [pytest.param(ends, id=name, marks=pytest.mark.soak if "together" in name else ()) for name, ends in BUSY.items()],
)
def test_a_long_backlog_delays_another_s_first_candidate_by_one_slot_at_most(
    fleet: Fleet, busy: tuple[float, ...]
) -> None:
    """Three steps of a Run need a device before its first verdict; all that it waits for devices is one slot.

    What it waits for a thread that proposes comes on top: here four seconds at most.
    """
    make_project(fleet.engine, "many")
    alone = first_verdict_s(fleet, make_project(fleet.engine, "alone"))
    while fleet.step():
        pass
    backlog(fleet.engine, "many", 500)
    backlog(fleet.engine, "many", 50, queue=PROPOSE, kind=JobKind.PROPOSE)
    backlog(fleet.engine, "many", 50, queue=BUILD, kind=JobKind.BUILD)
    fleet.stagger(*(fleet.at_s + moment for moment in busy))
    fleet.world.problem = problem("class Model: ... # another")
    crowded = first_verdict_s(fleet, make_project(fleet.engine, "few"))
    devices = [wait for job, wait in fleet.waits_s if job.project_id == "few" and job.queue == DEVICE]
    print(
        f"first verdict: {alone:.0f} s alone, {crowded:.0f} s beside 600 ready jobs, {sum(devices):.0f} s for devices"
    )
    assert sum(devices) <= SLOT_S
    assert crowded - alone <= SLOT_S + TAKES_S[JobKind.PROPOSE]
    assert fleet.served_s["many"] > 0.0


def test_devices_are_shared_by_seconds_and_by_weight_not_by_jobs(fleet: Fleet) -> None:
    """Long Jobs do not get more of a device than short ones; what a project waits costs it nothing."""
    for project, weight, kind in (
        ("long", 1.0, JobKind.JUDGE),
        ("short", 1.0, JobKind.ADMIT),
        ("heavy", 2.0, JobKind.BASELINE),
    ):
        backlog(fleet.engine, make_project(fleet.engine, project, weight), 120, kind=kind)
    while fleet.at_s < 1200:
        fleet.step()
    total = sum(fleet.served_s.values())
    shares = {project: seconds / total for project, seconds in fleet.served_s.items()}
    print(f"shares of device seconds: {shares}")
    assert shares["heavy"] == pytest.approx(0.5, abs=0.06)
    assert shares["long"] == pytest.approx(0.25, abs=0.06)
    assert shares["short"] == pytest.approx(0.25, abs=0.06)


def test_a_tenant_at_its_quota_holds_no_device_and_others_do_not_wait_for_it(fleet: Fleet) -> None:
    spent = make_project(fleet.engine, "spent")
    backlog(fleet.engine, spent, 500)
    with write_session(fleet.engine) as s:
        change_project(s, spent, quota=Quota(device_s_per_month=10.0))
        charge(s, spent, device_s=10.0)
    first_verdict_s(fleet, make_project(fleet.engine, "few"))
    assert "spent" not in fleet.served_s
    assert sum(wait for job, wait in fleet.waits_s if job.queue == DEVICE) == 0.0
    with write_session(fleet.engine) as s:
        change_project(s, spent, quota=Quota())
    assert fleet.world.claim(DEVICE) is not None


def test_a_place_is_kept_for_a_first_candidate_by_one_worker_and_not_for_long(fleet: Fleet) -> None:
    few = make_project(fleet.engine, "few")
    run = fleet.world.start(project=few)
    while (job := fleet.world.claim(DEVICE)) is not None:
        fleet.world.work(job)
    assert fleet.world.run(run.id).started_at is not None
    backlog(fleet.engine, make_project(fleet.engine, "many"), 10)
    assert fleet.world.claim(DEVICE, worker="a") is None
    assert fleet.world.claim(DEVICE, worker="b") is not None
    assert fleet.world.claim(DEVICE, worker="a") is None
    fleet.at_s += KEEP_S
    assert fleet.world.claim(DEVICE, worker="a") is not None
    for _ in range(3):  # more Runs keep none
        fleet.world.start(project=few)
        assert fleet.world.claim(DEVICE, worker="a") is not None
        fleet.at_s += 15.0
    fleet.at_s += KEEP_AGAIN_S
    fleet.world.start(project=few)
    assert fleet.world.claim(DEVICE, worker="a") is None
