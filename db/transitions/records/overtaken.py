"""Speedups over a Baseline that a later one overtook: estimates over the later one, until they are timed again.

A report times every ready mode in one session. So a speedup over one mode, times the ratio of the fastest mode's time
to that mode's in the same report, estimates the speedup over the fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from db.repositories.work.jobs import baseline_of, problem_of
from db.tables.core import CandidateRow, RunRow
from db.tables.history import MilestoneRow
from db.tables.ratios import WorkloadRatioRow
from db.transitions.records.archive import refresh_best, refresh_elite
from db.transitions.records.arms import stat_of
from db.transitions.records.history import record_best
from evaluator.types import BaselineReport, BaselineTime, DeviceKind, Evaluation, Stage, Verdict
from evolution.bandit import judged_reward


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """The factors from speedups over overtaken Baselines to estimates over the fastest: over all, and by Workload."""

    overall: float
    by_workload: Mapping[str, float]


def rescale_report(s: Session, run: RunRow, known: BaselineReport, report: BaselineReport) -> Rescale | None:
    """Return the factors for Candidates that were judged against `known`; None if no later mode is faster."""
    names = {time.workload for time in known.times} & {time.workload for time in report.times}
    return _rescale(s, run, {name: known.fastest(name) for name in names}, report)


def rescale_evaluation(s: Session, run: RunRow, evaluation: Evaluation) -> Rescale | None:
    """Return the factors for a Candidate that was judged while a faster Baseline came; None if none came."""
    report = baseline_of(s, run)
    if report is None:
        return None
    timed = {m.workload: m.baselines for m in evaluation.measurements if m.baselines}
    known = {one.workload for one in report.times}
    over = {
        name: min(times, key=lambda time: time.median_us)
        for name, times in timed.items()
        if name in known and report.fastest(name).mode not in {time.mode for time in times}
    }
    return _rescale(s, run, over, report)


def _rescale(s: Session, run: RunRow, over: Mapping[str, BaselineTime], report: BaselineReport) -> Rescale | None:
    factors = {name: _factor(time, report) for name, time in over.items()}
    slower = {name: factor for name, factor in factors.items() if factor < 1.0}
    if not slower:
        return None
    every = problem_of(s, run.problem_id).workloads_for(DeviceKind(run.device_kind))
    weights = {one.name: one.weight for one in every if not one.held_out}
    logs = sum(weights.get(name, 0.0) * math.log(factor) for name, factor in slower.items())
    return Rescale(overall=math.exp(logs / sum(weights.values())), by_workload=slower)


def _factor(over: BaselineTime, report: BaselineReport) -> float:
    """Return the fastest mode's time by that of an earlier one, both of the report where it has both; at most 1."""
    best = report.fastest(over.workload)
    again = (one.median_us for one in report.times if (one.mode, one.workload) == (over.mode, over.workload))
    return min(1.0, best.median_us / next(again, over.median_us))


def outdate(s: Session, run: RunRow, scale: Rescale) -> None:
    """Make the speedups of a Run's judged Candidates estimates over a later Baseline, and have elites timed again.

    A confirmation waits for every Baseline, so its speedup stays.
    """
    s.flush()
    judged = CandidateRow.stage != Stage.CONFIRM
    _correct_first_reward(s, run, scale)
    scale_speedups(s, run, scale, judged)
    confirmed = CandidateRow.run_id == run.id, CandidateRow.stage == Stage.CONFIRM
    for candidate in s.scalars(select(CandidateRow).where(*confirmed)).all():
        refresh_elite(s, candidate)  # it may be faster now than the relatives that were only judged
    refresh_best(s, run)
    record_best(s, run)


def scale_speedups(s: Session, run: RunRow, scale: Rescale, which: ColumnElement[bool]) -> None:
    """Multiply the speedups of a Run's Candidates, over all and by Workload, and mark them as outdated."""
    timed = CandidateRow.run_id == run.id, CandidateRow.speedup.is_not(None), which
    s.flush()
    for name, factor in scale.by_workload.items():
        s.execute(
            update(WorkloadRatioRow)
            .where(
                WorkloadRatioRow.run_id == run.id,
                WorkloadRatioRow.workload == name,
                WorkloadRatioRow.candidate_id.in_(select(CandidateRow.id).where(*timed)),
            )
            .values(
                speedup=WorkloadRatioRow.speedup * factor,
                low=WorkloadRatioRow.low * factor,
                high=WorkloadRatioRow.high * factor,
            )
            .execution_options(synchronize_session="fetch")
        )
    s.execute(
        update(CandidateRow)
        .where(*timed)
        .values(
            speedup=CandidateRow.speedup * scale.overall,
            speedup_low=CandidateRow.speedup_low * scale.overall,
            speedup_high=CandidateRow.speedup_high * scale.overall,
            outdated=True,
            retimed=False,
        )
        .execution_options(synchronize_session="fetch")
    )


def _correct_first_reward(s: Session, run: RunRow, scale: Rescale) -> None:
    """Take the gain over a slower Baseline from the arm of the Run's first Candidate.

    The others' rewards are gains over Candidates, which no Baseline changes.
    """
    ids = select(MilestoneRow.candidate_id).where(MilestoneRow.run_id == run.id, MilestoneRow.ordinal == 1)
    first = s.scalars(select(CandidateRow).where(CandidateRow.id.in_(ids))).one_or_none()
    if first is None or first.verdict != Verdict.PASSED or first.speedup is None or first.stage == Stage.CONFIRM:
        return
    gained, left = judged_reward(first.speedup, None), judged_reward(first.speedup * scale.overall, None)
    stat_of(s, first).reward -= gained - left
