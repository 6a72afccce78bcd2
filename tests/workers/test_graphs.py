"""References are traced once, before anybody asks where possible."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from db.engine import read_session
from db.repositories.work import proposing
from db.views.work import Upcoming
from evaluator.cage.policy import CagePolicy
from evaluator.errors import CageError
from evaluator.types import DeviceKind, Problem, Workload
from evolution.types import RunStatus
from runtime.queues import PROPOSE
from runtime.settings import Settings
from synthesis import Graph, TraceError
from tests.workers.conftest import Shop, drain
from workers import graphs
from workers.deadline import Deadline
from workers.errors import StepFailed
from workers.graphs import Graphs
from workers.loop import work
from workers.proposers import Proposers

CPU = DeviceKind.CPU


class NoCage:
    """In place of a pool."""

    closed = False

    def close(self) -> None:
        self.closed = True


class Tracer:
    """Counts traces in place of a cage. `go` lets them end."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.begun, self.go = threading.Semaphore(0), threading.Event()
        self.go.set()
        self.error: Exception | None = None
        self.no_pool: Exception | None = None
        self.pools: list[NoCage] = []

    def pool(self, kind: DeviceKind, *, policy: CagePolicy) -> NoCage:
        if self.no_pool is not None:
            raise self.no_pool
        self.pools.append(NoCage())
        return self.pools[-1]

    def capture(self, problem: Problem, *_: object, **__: object) -> Mapping[str, Graph]:
        self.sources.append(problem.source)
        self.begun.release()
        assert self.go.wait(30.0)
        if self.error is not None:
            raise self.error
        return {}


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracer]:
    made = Tracer()
    monkeypatch.setattr(graphs, "ChildPool", made.pool)
    monkeypatch.setattr(graphs, "capture", made.capture)
    graphs.shared.cache_clear()
    yield made
    graphs.shared.cache_clear()


def problem(source: str = "class Model: ...") -> Problem:
    return Problem(name="p", source=source, workloads=(Workload(name="small", sizes={"rows": 4}),))


def test_threads_that_want_the_same_graphs_wait_for_one_trace(tracer: Tracer) -> None:
    found = Graphs()
    tracer.go.clear()
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(found.of, problem(), CPU, Deadline(30.0)) for _ in range(3)]
        assert tracer.begun.acquire(timeout=30.0)
        assert found.is_begun(problem(), CPU)
        other = threads.submit(found.of, problem("another"), CPU, Deadline(30.0))
        assert tracer.begun.acquire(timeout=30.0), "another reference does not wait"
        tracer.go.set()
        assert [one.result() for one in [*asked, other]] == [{}] * 4
    assert sorted(tracer.sources) == ["another", "class Model: ..."]


def test_a_trace_that_takes_too_long_costs_who_waits_for_it_its_deadline(tracer: Tracer) -> None:
    found = Graphs()
    tracer.go.clear()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(found.of, problem(), CPU, Deadline(30.0))
        assert tracer.begun.acquire(timeout=30.0)
        with pytest.raises(StepFailed, match="takes too long"):
            found.of(problem(), CPU, Deadline(0.0))
        tracer.go.set()
        assert first.result() == {}


def test_an_untraceable_reference_is_tried_once_and_a_failing_machine_again(tracer: Tracer) -> None:
    found = Graphs()
    tracer.error = CageError("no cage")
    with pytest.raises(StepFailed, match="no cage"):
        found.of(problem(), CPU, Deadline(30.0))
    assert not found.is_begun(problem(), CPU)
    tracer.error = TraceError("it needs values")
    for _ in range(2):
        with pytest.raises(TraceError, match="it needs values"):
            found.of(problem(), CPU, Deadline(30.0))
    assert len(tracer.sources) == 2


def test_one_pool_traces_all_and_another_is_started_where_it_did_not_start(tracer: Tracer) -> None:
    found = Graphs()
    tracer.no_pool = CageError("no room")
    found.begin()
    with pytest.raises(StepFailed, match="no room"):
        found.of(problem(), CPU, Deadline(30.0))
    tracer.no_pool, tracer.error = None, CageError("its fork server ended")
    with pytest.raises(StepFailed, match="its fork server ended"):
        found.of(problem(), CPU, Deadline(30.0))
    tracer.error = None
    found.of(problem(), CPU, Deadline(30.0))
    found.of(problem("another"), CPU, Deadline(30.0))
    assert [pool.closed for pool in tracer.pools] == [False]
    found.close()
    assert [pool.closed for pool in tracer.pools] == [True]


def test_only_proposers_that_read_graphs_have_references_traced_ahead(tracer: Tracer) -> None:
    proposers = Proposers(Settings())
    assert not proposers.prepare(Upcoming(problem=problem(), device_kind=CPU, proposers=("replay:a", "unknown")))
    asked = Upcoming(problem=problem(), device_kind=CPU, proposers=("replay:a", "synthesiser"))
    assert proposers.prepare(asked)
    assert not proposers.prepare(asked)
    tracer.error = TraceError("it needs values")
    assert proposers.prepare(Upcoming(problem=problem("another"), device_kind=CPU, proposers=("synthesiser",)))
    assert len(tracer.sources) == 2


def test_a_reference_is_traced_while_it_is_admitted(shop: Shop, tracer: Tracer) -> None:
    context = shop.context()
    run = shop.start(proposers=("synthesiser",))
    with read_session(context.engine) as s:
        assert [one.problem.source for one in proposing.upcoming(s)] == ["class Model: ..."]
    work(context, "propose")
    assert tracer.sources == ["class Model: ..."]
    assert shop.run(run.id).status is RunStatus.QUEUED
    drain(context)
    assert len(tracer.sources) == 1, "its Proposals take what there is"
    with read_session(context.engine) as s:
        assert proposing.upcoming(s) == ()


def test_a_machine_that_cannot_trace_ahead_leaves_it_to_the_proposals(shop: Shop, tracer: Tracer) -> None:
    context = shop.context()
    tracer.error = CageError("no cage")
    shop.start(proposers=("synthesiser",))
    assert work(context, "propose") == 0
    assert len(tracer.sources) == 1


@pytest.mark.parametrize("ahead", [True, False])
def test_what_traces_starts_with_a_propose_worker_or_when_it_is_needed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    begun: list[str] = []
    one = Graphs()
    monkeypatch.setattr(one, "begin", lambda: begun.append("begun"))
    monkeypatch.setattr("workers.graphs.shared", lambda: one)
    shop.context(trace_ahead=ahead).begin(PROPOSE)
    assert begun == ["begun"] * ahead
