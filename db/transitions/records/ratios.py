"""The speedups of a Candidate by Workload."""

from __future__ import annotations

from sqlalchemy import delete
from sqlalchemy.orm import Session

from db.tables.core import CandidateRow
from db.tables.ratios import WorkloadRatioRow
from evaluator.types import Evaluation
from evolution.arms import DISPATCH


def store_ratios(s: Session, candidate: CandidateRow, evaluation: Evaluation) -> None:
    """Store a Candidate's speedups over the fastest Baseline, in place of those of an earlier judging."""
    drop_ratios(s, candidate)
    s.add_all(
        WorkloadRatioRow(
            candidate_id=candidate.id,
            workload=ratio.workload,
            run_id=candidate.run_id,
            combined=candidate.proposer == DISPATCH,
            speedup=ratio.value,
            low=ratio.interval.low,
            high=ratio.interval.high,
        )
        for ratio in evaluation.speedups
        if ratio.against == "fastest" and ratio.workload is not None
    )


def drop_ratios(s: Session, candidate: CandidateRow) -> None:
    """Delete the speedups of a Candidate that failed its confirmation."""
    s.execute(delete(WorkloadRatioRow).where(WorkloadRatioRow.candidate_id == candidate.id))
