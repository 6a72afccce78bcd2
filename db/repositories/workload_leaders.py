"""The fastest Candidate on each Workload of a Run."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.bounded_cache import BoundedCache
from db.packing import load_baseline
from db.tables.core import BaselineRow, CandidateRow, ProblemRow, RunRow
from db.tables.ratios import WorkloadRatioRow
from evaluator.schema import from_json
from evaluator.types import BaselineReport, DeviceKind, Problem
from evolution.state import RatedCandidate, WorkloadLeaders

_Known = Mapping[str, tuple[float, float | None]]
_KNOWN: BoundedCache[tuple[str, str, str], _Known] = BoundedCache()
"""Weights and reference speeds of Workloads, by Problem, device kind and report of Baselines."""

_COLUMNS = (
    WorkloadRatioRow.workload,
    WorkloadRatioRow.candidate_id,
    WorkloadRatioRow.speedup,
    WorkloadRatioRow.low,
    WorkloadRatioRow.high,
    WorkloadRatioRow.combined,
    CandidateRow.number,
)


def workload_leaders(s: Session, run: RunRow) -> dict[str, WorkloadLeaders]:
    """Return the fastest Candidate on each Workload of a Run.

    The result is empty for a single Workload, and before anything has passed.
    """
    if run.best_id is None:
        return {}
    known = _known(s, run)
    if len(known) < 2:
        return {}
    joined = select(*_COLUMNS).join(CandidateRow, CandidateRow.id == WorkloadRatioRow.candidate_id)
    best = {row.workload: row for row in s.execute(joined.where(WorkloadRatioRow.candidate_id == run.best_id))}
    found: dict[str, WorkloadLeaders] = {}
    for workload, (weight, reference) in known.items():
        leads = joined.where(
            WorkloadRatioRow.run_id == run.id,
            WorkloadRatioRow.workload == workload,
            WorkloadRatioRow.combined.is_(False),
        ).order_by(WorkloadRatioRow.speedup.desc())
        leader = s.execute(leads.limit(1)).one_or_none()
        if leader is None or workload not in best:
            return {}
        found[workload] = WorkloadLeaders(
            weight=weight, best=_rated(best[workload]), leader=_rated(leader), reference=reference
        )
    return found


def best_speedups(s: Session, run: RunRow, *, besides: str) -> dict[str, float]:
    """Return the best speedup on each Workload of a Run by other elites, as timed over the fastest Baseline.

    Estimates are left out: a Candidate must not be called slower by one.
    """
    found: dict[str, float] = {}
    for workload in _known(s, run) if run.best_id is not None else ():
        for combined in (False, True):  # the index begins with these: the first rows of each do
            fastest = s.scalar(
                select(WorkloadRatioRow.speedup)
                .join(CandidateRow, CandidateRow.id == WorkloadRatioRow.candidate_id)
                .where(
                    WorkloadRatioRow.run_id == run.id,
                    WorkloadRatioRow.workload == workload,
                    WorkloadRatioRow.combined.is_(combined),
                    CandidateRow.id != besides,
                    CandidateRow.elite,
                    CandidateRow.outdated.is_(False),
                )
                .order_by(WorkloadRatioRow.speedup.desc())
                .limit(1)
            )
            if fastest is not None:
                found[workload] = max(fastest, found.get(workload, 0.0))
    return found


def _rated(row: object) -> RatedCandidate:
    names = ("candidate_id", "number", "speedup", "low", "high", "combined")
    return RatedCandidate(**{name: getattr(row, name) for name in names})


def _known(s: Session, run: RunRow) -> _Known:
    row = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    key = (run.problem_id, run.device_kind, "" if row is None else f"{row.id} {row.settled_at}")
    if key not in _KNOWN:
        problem = from_json(Problem, s.get_one(ProblemRow, run.problem_id).body)
        report = load_baseline(row.body) if row is not None and row.body is not None else None
        shown = [one for one in problem.workloads_for(DeviceKind(run.device_kind)) if not one.held_out]
        _KNOWN[key] = {one.name: (one.weight, _reference(report, one.name)) for one in shown}
    return _KNOWN[key]


def _reference(report: BaselineReport | None, workload: str) -> float | None:
    """Return the speed of the eager reference against the fastest Baseline: at most 1."""
    eager = [time for time in report.times if (time.mode, time.workload) == ("eager", workload)] if report else []
    return None if report is None or not eager else report.fastest(workload).median_us / eager[0].median_us
