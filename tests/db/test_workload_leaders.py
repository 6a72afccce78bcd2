"""Leaders by Workload, and the dispatch that comes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Engine, select

from db.engine import read_session, write_session
from db.repositories import workload_leaders
from db.tables.core import CandidateRow, ProposalRow, RunRow
from db.tables.ratios import WorkloadRatioRow
from db.views.work import ProposalResult, ProposeWork
from evaluator.types import Candidate, Evaluation, Interval, Problem, Ratio, Workload
from evolution.types import Budget, Run, RunConfig
from tests.db.world import EXHAUSTED, World, candidate_result, passed

SHAPES = Problem(
    name="two",
    source="class Model: ...",
    workloads=(
        Workload(name="long", weight=3.0),
        Workload(name="wide"),
        Workload(name="hidden", held_out=True),
    ),
)


@dataclass
class Shapes(World):
    """Kernels are "speed=1.5 long=2.0 wide=1.1"; a dispatch runs as fast as its kernels, over all by `combined`."""

    sources: tuple[str, ...] = ()
    combined: float = 2.0

    def answer(self, work: ProposeWork) -> ProposalResult:
        if work.arm.proposer == "dispatch":
            chosen = work.hint["kernels"]
            said = [f"{name}={_speed(work.parents[n].source, name)}" for name, n in chosen.items()]
            return candidate_result(f"speed={self.combined} {' '.join(said)}")
        if work.arm_number < len(self.sources):
            return candidate_result(self.sources[work.arm_number])
        return EXHAUSTED

    def judge(self, c: Candidate) -> Evaluation:
        found = passed(self.problem, c, _speed(c.source, "speed"))
        return replace(found, speedups=(*found.speedups, *(_ratio(c.source, name) for name in ("long", "wide"))))


def _speed(source: str, name: str) -> float:
    return float(source.split(f"{name}=")[1].split()[0])


def _ratio(source: str, workload: str) -> Ratio:
    value = _speed(source, workload)
    return Ratio(
        against="fastest", value=value, interval=Interval(low=value * 0.99, high=value * 1.01), workload=workload
    )


def world(engine: Engine, *sources: str, **more: float) -> tuple[Shapes, Run]:
    made = Shapes(engine, problem=SHAPES, sources=sources, **more)  # type: ignore[arg-type]
    made.propose = made.answer
    run = made.start(Budget(candidates=12), RunConfig(proposers=("replay:x",), in_flight=1))
    made.drain()
    return made, run


def proposals(engine: Engine) -> list[ProposalRow]:
    with read_session(engine) as s:
        return list(
            s.scalars(select(ProposalRow).where(ProposalRow.proposer == "dispatch").order_by(ProposalRow.number))
        )


def test_a_dispatch_of_the_winners_is_judged_like_any_other(engine: Engine) -> None:
    _, run = world(engine, "speed=1.7 long=2.0 wide=1.1", "speed=1.2 long=0.9 wide=3.0")
    (asked,) = proposals(engine)
    with read_session(engine) as s:
        numbers = dict(
            s.execute(select(CandidateRow.number, CandidateRow.id).where(CandidateRow.run_id == run.id)).all()
        )
        found = s.get_one(CandidateRow, asked.candidate_id)
        row = s.get_one(RunRow, run.id)
        assert (row.best_id, row.champion_id) == (found.id, found.id)
    assert asked.parents == [numbers[1], numbers[2]]
    assert asked.hint == {"kernels": {"long": 0, "wide": 1}}
    assert (asked.variant, found.speedup, found.verdict) == ("1,2", 2.0, "PASSED")


def test_none_where_one_kernel_wins_everywhere(engine: Engine) -> None:
    world(engine, "speed=1.7 long=2.0 wide=3.1", "speed=1.2 long=0.9 wide=3.0")
    assert proposals(engine) == []


def test_a_dispatch_that_is_no_faster_is_not_tried_again(engine: Engine) -> None:
    world(engine, "speed=1.7 long=2.0 wide=1.1", "speed=1.2 long=0.9 wide=3.0", combined=1.6)
    assert len(proposals(engine)) == 1


def test_shares_name_the_leaders_and_leave_dispatches_and_held_out_workloads_out(engine: Engine) -> None:
    _, run = world(engine, "speed=1.7 long=2.0 wide=1.1", "speed=1.2 long=0.9 wide=3.0")
    with read_session(engine) as s:
        found = workload_leaders.workload_leaders(s, s.get_one(RunRow, run.id))
    assert set(found) == {"long", "wide"}
    assert [found[name].leader.number for name in ("long", "wide")] == [1, 2]
    assert found["long"].weight == 3.0
    assert found["wide"].best.combined
    assert found["wide"].reference is None  # the Baselines here were timed on another Workload


def test_the_speedups_to_beat_are_others_and_over_the_fastest_baseline(engine: Engine) -> None:
    _, run = world(engine, "speed=1.7 long=2.0 wide=3.1", "speed=1.2 long=0.9 wide=3.0")
    with write_session(engine) as s:
        row = s.get_one(RunRow, run.id)
        first, second = s.scalars(
            select(CandidateRow).where(CandidateRow.run_id == run.id).order_by(CandidateRow.number)
        )
        assert workload_leaders.best_speedups(s, row, besides="") == {"long": 2.0, "wide": 3.1}
        assert workload_leaders.best_speedups(s, row, besides=first.id) == {"long": 0.9, "wide": 3.0}
        second.outdated = True
        assert workload_leaders.best_speedups(s, row, besides=first.id) == {}


def test_another_judging_replaces_what_the_first_said(engine: Engine) -> None:
    _, run = world(engine, "speed=1.7 long=2.0 wide=1.1")
    with read_session(engine) as s:
        rows = s.scalars(select(WorkloadRatioRow).where(WorkloadRatioRow.run_id == run.id)).all()
    assert sorted((row.workload, row.speedup) for row in rows) == [("long", 2.0), ("wide", 1.1)]
