"""Baselines that compile for long join a Run later, and elites that they overtake are judged again."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from sqlalchemy import Engine, select

from db.engine import read_session, write_session
from db.queues import JobKind
from db.recording import export_run
from db.replay import replay_archive
from db.repositories import baselines, candidates, events, workload_leaders
from db.repositories.work.jobs import payload
from db.tables.core import CandidateRow, EvaluationRow, RunRow
from db.tables.history import MilestoneRow
from db.tables.queue import JobRow
from db.tables.ratios import WorkloadRatioRow
from db.transitions.extend import extend_run
from db.transitions.records.arms import stat_of
from db.transitions.runs import cancel_run
from db.transitions.work import settle
from db.transitions.work.enqueue import end_run
from db.views.work import BaselineWork, JudgeWork
from evaluator.types import BaselineReport, DeviceKind, Problem, Stage, Workload
from evolution.bandit import judged_reward
from evolution.types import Budget, EndReason, RunConfig, RunStatus
from tests.db.late_world import LateWorld, look, overtake
from tests.db.world import World, baseline, from_list, passed


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


def test_who_also_builds_judges_first_and_looks_for_late_baselines_last(engine: Engine) -> None:
    world = LateWorld(engine, propose=from_list("speed=1.5", "speed=1.4"))
    world.start(Budget(candidates=2), RunConfig(in_flight=2))
    world.work(world.take(JobKind.ADMIT))
    first = world.claim("cpu")
    assert first is not None
    world.settle_baseline(first, world.early())
    while (job := world.claim("control", "propose")) is not None:
        world.work(job)
    kinds = []
    while kinds.count(JobKind.JUDGE) < 2:
        claimed = world.claim("cpu", "build")
        assert claimed is not None
        kinds.append(claimed.kind)
        world.work(claimed)
    look, judge, build = JobKind.BASELINE, JobKind.JUDGE, JobKind.BUILD
    assert kinds == [build, look, judge, build, look, judge], "a look comes before a build only if a judgement follows"


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
    assert [(c.speedup, c.outdated) for c in _candidates(engine, run_id)] == [(1.5, True), (0.3, True)]
    with read_session(engine) as s:
        work = payload(s, again)
    assert isinstance(work, JudgeWork)
    assert work.baseline is not None
    assert work.baseline.fastest("small").mode == "compile"
    world.work(again)
    assert [(c.speedup, c.outdated) for c in _candidates(engine, run_id)] == [(1.5, False), (0.3, True)]
    world.drain()  # the slow one cannot have become fast
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
    (first,) = _candidates(engine, run_id)
    assert (first.speedup, first.outdated) == (1.5, True)
    with read_session(engine) as s:
        told = [e.data for e in events.after(s, run_id, 0, limit=100) if e.kind == "evaluation.settled"]
        assert [(e["speedup"], e["outdated"]) for e in told] == [(1.5, True)]
        assert s.get_one(RunRow, run_id).best_speedup == 1.5
        assert stat_of(s, first).reward == pytest.approx(judged_reward(1.5, None))
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


def test_an_estimate_takes_the_place_of_a_speedup_over_an_overtaken_baseline(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.65", "speed=1.9")
    world.work(world.take(JobKind.JUDGE))
    overtake(world, scaled(baseline(world.problem), 1.1))
    (first,) = _candidates(engine, run_id)
    assert (first.speedup, first.speedup_low, first.speedup_high) == (1.65, pytest.approx(1.617), pytest.approx(1.683))
    with read_session(engine) as s:
        run = s.get_one(RunRow, run_id)
        (ratio,) = s.scalars(select(WorkloadRatioRow))
        told = [e.data for e in events.after(s, run_id, 0, limit=100) if e.kind == "baseline.timed"]
        milestones = s.scalars(select(MilestoneRow.speedup).where(MilestoneRow.run_id == run_id)).all()
        assert (run.best_speedup, ratio.speedup) == (1.65, 1.65)
    assert [e["rescaled"] for e in told] == [None, 0.5]
    assert told[1]["times_us"] == {"small": {"eager": 44.0, "compile": 22.0}}
    assert milestones == [3.3, 1.65]
    world.drain()
    best = _candidates(engine, run_id)[1]
    assert world.run(run_id).best_id == best.id
    assert world.run(run_id).champion_id == best.id


def test_the_best_is_judged_again_before_judgements_that_wait(engine: Engine) -> None:
    speeds = [1.5, 1.2, 1.1, 1.0, 0.9, 0.8]
    world = LateWorld(engine, propose=from_list(*(f"speed={speed}" for speed in speeds)))
    run = world.start(Budget(candidates=6), RunConfig(in_flight=6))
    world.settle_baseline(world.take(JobKind.BASELINE), world.early())
    while (job := world.claim("control", "propose", "build.cpu")) is not None:
        world.work(job)
    while (job := world.claim("cpu")) is not None and job.kind == JobKind.JUDGE:
        world.work(job)
    assert job is not None
    world.settle_baseline(job, baseline(world.problem))
    world.work(world.take(JobKind.ADVANCE))
    with read_session(engine) as s:
        ready = s.scalars(select(JobRow).where(JobRow.state == "ready", JobRow.kind == JobKind.JUDGE)).all()
        assert len(ready) > 1, "others wait"
    again = world.claim("cpu")
    assert again is not None
    with read_session(engine) as s:
        found = s.get_one(EvaluationRow, again.subject_id)
        row = s.get_one(JobRow, again.id)
        said = [e.data["decisions"] for e in events.after(s, run.id, 0, limit=100) if e.kind == "search.decided"]
        assert (row.kind, row.urgent, found.ordinal) == (JobKind.JUDGE, True, 2)
    assert said[-1][0] == "retime 1 first"


def test_a_run_that_ends_before_the_judging_keeps_an_estimate(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5", "speed=1.4")
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    world.work(world.take(JobKind.ADVANCE))
    (first,) = _candidates(engine, run_id)
    assert (first.outdated, first.retimed, first.speedup) == (True, True, 1.5)
    with write_session(engine) as s:
        cancel_run(s, run_id)
    (first,) = _candidates(engine, run_id)
    assert (first.outdated, first.speedup) == (True, 1.5)
    with read_session(engine) as s:
        assert candidates.get(s, first.id).outdated


def test_a_baseline_that_comes_after_the_end_makes_estimates_too(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    world.promote = lambda work, speedup: False
    world.work(world.take(JobKind.JUDGE))
    looking = look(world)
    with write_session(engine) as s:
        cancel_run(s, run_id)
    world.settle_baseline(looking, baseline(world.problem))
    (first,) = _candidates(engine, run_id)
    assert (first.speedup, first.outdated) == (1.5, True)


def test_an_extended_run_times_again_what_its_end_prevented(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    world.work(world.take(JobKind.ADVANCE))
    with write_session(engine) as s:
        run = s.get_one(RunRow, run_id)
        end_run(s, run, RunStatus.FINISHED, EndReason.BUDGET, "The time budget is used up.")
    with write_session(engine) as s:
        extend_run(s, run_id, Budget(candidates=1))
    world.drain()
    (first, *_) = _candidates(engine, run_id)
    assert (first.speedup, first.outdated, first.confirmed) == (1.5, False, True)


def test_a_confirmed_speedup_stays_and_leads_its_design(engine: Engine) -> None:
    """A confirmation waits for every Baseline."""
    world, run_id = late_world(engine, "speed=1.5")
    world.promote = lambda work, speedup: False
    world.work(world.take(JobKind.JUDGE))
    looking = look(world)
    with write_session(engine) as s:
        (first,) = s.scalars(select(CandidateRow).where(CandidateRow.run_id == run_id))
        first.stage, first.speedup = "confirm", 1.4
    world.settle_baseline(looking, baseline(world.problem))
    (first,) = _candidates(engine, run_id)
    assert (first.speedup, first.outdated) == (1.4, False)


def test_a_slower_baseline_earns_no_reward(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    (first,) = _candidates(engine, run_id)
    with read_session(engine) as s:
        assert stat_of(s, first).reward == pytest.approx(judged_reward(1.5, None))


def test_a_retime_that_never_ends_is_not_ordered_again(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    give_up(world)
    world.drain()
    (first,) = _candidates(engine, run_id)
    with read_session(engine) as s:
        kinds = s.scalars(select(EvaluationRow.kind).where(EvaluationRow.run_id == run_id)).all()
        urgent = s.scalars(select(JobRow.urgent).where(JobRow.kind == JobKind.CONFIRM)).all()
    assert kinds == ["judge", "judge", "confirm"]
    assert urgent == [True]
    assert first.confirmed


DESIGN = 'CONFIG = {{"A": "speed={speed} "}}\nTUNABLES = {{"A": ["speed=1.65 ", "speed=1.9 "]}}\n'


def test_a_relative_that_was_timed_over_a_slower_baseline_hides_nothing(engine: Engine) -> None:
    """One of a design leads it, so a speedup over a slower Baseline would keep the faster one from a confirmation."""
    sources = DESIGN.format(speed=1.65), DESIGN.format(speed=1.9)
    world, run_id = late_world(engine, *sources)
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    give_up(world)
    world.drain()
    first, second = _candidates(engine, run_id)
    assert (first.speedup, first.outdated) == (1.65, True)
    assert (first.elite, second.elite, second.confirmed) == (False, True, True)
    assert world.run(run_id).best_id == world.run(run_id).champion_id == second.id


def test_the_end_says_that_the_best_is_an_estimate(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=0.9")
    world.work(world.take(JobKind.JUDGE))
    overtake(world, baseline(world.problem))
    world.drain()
    assert "The best candidate is estimated to be 0.90x as fast" in world.run(run_id).message
    assert world.run(run_id).message.endswith("Use compile (20.0 us on small).")


def test_the_end_says_what_had_not_compiled(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=0.4")
    for _ in range(100):  # the look for late Baselines is never done
        job = world.claim()
        assert job is not None
        world.work(job)
        if world.run(run_id).status.ended:
            break
    assert world.run(run_id).message.endswith("Use eager (40.0 us on small); compile had not compiled yet.")


def test_the_end_names_a_baseline_that_only_a_confirmation_timed(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    world.confirm = lambda item: passed(world.problem, item.candidate, 1.1, stage=Stage.CONFIRM)
    for _ in range(100):  # the look for late Baselines is never done
        job = world.claim()
        assert job is not None
        world.work(job)
        if world.run(run_id).status.ended:
            break
    assert "Use compile (20.0 us on small). Not promoted: #1, confirmed at 1.10x" in world.run(run_id).message


def test_the_factor_of_each_workload_counts_by_its_weight(engine: Engine) -> None:
    shapes = Problem(
        name="two",
        source="class Model: ...",
        workloads=(Workload(name="small", weight=3.0), Workload(name="wide"), Workload(name="h", held_out=True)),
    )
    world = LateWorld(engine, problem=shapes, propose=from_list("speed=1.5"))
    run_id = world.start(Budget(candidates=1), RunConfig(in_flight=1)).id
    whole = two_workloads(baseline(shapes))
    early = replace(whole, times=tuple(t for t in whole.times if t.mode == "eager"), pending=("compile",))
    world.settle_baseline(world.take(JobKind.BASELINE), early)
    world.work(world.take(JobKind.JUDGE))
    with write_session(engine) as s:
        values = {"combined": False, "speedup": 3.0, "low": 2.9, "high": 3.1}
        run = s.get_one(RunRow, run_id)
        s.add(WorkloadRatioRow(candidate_id=run.best_id, workload="wide", run_id=run_id, **values))
    assert references(engine, run_id) == {"small": 1.0, "wide": 1.0}
    faster = tuple(
        replace(t, median_us=10.0) if (t.mode, t.workload) == ("compile", "wide") else t for t in whole.times
    )
    overtake(world, replace(whole, times=faster))
    (first,) = _candidates(engine, run_id)
    assert first.speedup == pytest.approx(3.0 * 0.5**0.75 * 0.25**0.25)
    assert [references(engine, run_id)[name] for name in ("small", "wide")] == [0.5, 0.25]


def test_a_mode_that_the_new_report_lost_is_compared_by_its_own_time(engine: Engine) -> None:
    world, run_id = late_world(engine, "speed=1.5")
    world.work(world.take(JobKind.JUDGE))
    whole = baseline(world.problem)
    alone = replace(whole, times=tuple(t for t in whole.times if t.mode == "compile"), skipped={"eager": "it failed"})
    overtake(world, alone)
    (first,) = _candidates(engine, run_id)
    assert (first.speedup, first.outdated) == (1.5, True)


def give_up(world: LateWorld) -> None:
    """Let the next judgement fail for good."""
    for _ in range(3):
        job = world.take(JobKind.JUDGE)
        with write_session(world.engine) as s:
            settle.fail_job(s, job, "the judge ended without an answer", ours=True)


def references(engine: Engine, run_id: str) -> dict[str, float | None]:
    """The reference's speedup over the fastest Baseline, by Workload."""
    with read_session(engine) as s:
        found = workload_leaders.workload_leaders(s, s.get_one(RunRow, run_id))
    return {name: one.reference for name, one in found.items()}


def scaled(report: BaselineReport, factor: float) -> BaselineReport:
    """The report of a slower session."""
    return replace(report, times=tuple(replace(t, median_us=t.median_us * factor) for t in report.times))


def two_workloads(report: BaselineReport) -> BaselineReport:
    return replace(report, times=(*report.times, *(replace(t, workload="wide") for t in report.times)))


def _candidates(engine: Engine, run_id: str) -> list[CandidateRow]:
    with read_session(engine) as s:
        return list(s.scalars(select(CandidateRow).where(CandidateRow.run_id == run_id).order_by(CandidateRow.number)))
