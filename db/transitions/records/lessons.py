"""The lessons of a Run, stored when it ends."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.tables.core import BaselineRow, CandidateRow, ProblemRow, RunRow
from db.tables.lessons import LessonRow
from db.tables.ratios import WorkloadRatioRow
from evaluator.schema import from_json, to_json
from evaluator.types import Problem, Verdict
from evolution.lessons import Trial, TunableLesson, distil

MOST_TRIALS = 2000
"""Lessons come from this many of a Run's newest Candidates."""


def store_lessons(s: Session, run: RunRow) -> tuple[TunableLesson, ...]:
    """Replace the lessons of a Run by those of its judged Candidates now."""
    s.flush()
    s.execute(delete(LessonRow).where(LessonRow.run_id == run.id))
    baseline = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    if baseline is None or baseline.device_name is None:
        return ()
    found = distil(_trials(s, run))
    if not found:
        return ()
    problem = from_json(Problem, s.get_one(ProblemRow, run.problem_id).body)
    sizes = {workload.name: dict(workload.sizes) for workload in problem.workloads if not workload.held_out}
    s.add_all(
        LessonRow(
            id=new_id("less"),
            project_id=run.project_id,
            problem_id=run.problem_id,
            run_id=run.id,
            device_kind=run.device_kind,
            device_name=baseline.device_name,
            body=to_json(one),
            sizes=sizes.get(one.workload, {}),
            created_at=now(s),
        )
        for one in found
    )
    return found


def _trials(s: Session, run: RunRow) -> list[Trial]:
    rows = s.execute(
        select(
            CandidateRow.id,
            CandidateRow.family,
            CandidateRow.language,
            CandidateRow.configuration,
            CandidateRow.speedup,
        )
        .where(
            CandidateRow.run_id == run.id,
            CandidateRow.family.is_not(None),
            CandidateRow.verdict == Verdict.PASSED,
            CandidateRow.speedup.is_not(None),
            CandidateRow.number > run.candidates - MOST_TRIALS,
        )
        .order_by(CandidateRow.number)
    ).all()
    each: dict[str, dict[str, float]] = {}
    ratios = select(WorkloadRatioRow.candidate_id, WorkloadRatioRow.workload, WorkloadRatioRow.speedup)
    for ratio in s.execute(ratios.where(WorkloadRatioRow.run_id == run.id)):
        each.setdefault(ratio.candidate_id, {})[ratio.workload] = ratio.speedup
    return [
        Trial(
            family=row.family,
            language=row.language,
            configuration=row.configuration,
            speedups={"": row.speedup, **each.get(row.id, {})},
        )
        for row in rows
    ]
