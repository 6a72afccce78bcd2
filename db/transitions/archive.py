"""The archive of elites as columns: the fastest passed Candidate of each cell (island, niche) carries `elite`."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.tables import CandidateRow, RunRow
from evaluator.types import Verdict

IMPROVEMENT = 1.01


def refresh_cell(s: Session, candidate: CandidateRow) -> None:
    """Choose the elite of a Candidate's cell again, after what is known of it has changed."""
    s.flush()
    cell = (
        CandidateRow.run_id == candidate.run_id,
        CandidateRow.island == candidate.island,
        CandidateRow.niche == candidate.niche,
    )
    best = s.scalars(
        select(CandidateRow.id)
        .where(*cell, CandidateRow.verdict == Verdict.PASSED, CandidateRow.speedup.is_not(None))
        .order_by(CandidateRow.speedup.desc(), CandidateRow.id)
        .limit(1)
    ).one_or_none()
    s.execute(
        update(CandidateRow)
        .where(CandidateRow.run_id == candidate.run_id, CandidateRow.elite, *cell[1:], CandidateRow.id != (best or ""))
        .values(elite=False)
        .execution_options(synchronize_session="fetch")
    )
    if best is not None:
        s.execute(
            update(CandidateRow)
            .where(CandidateRow.id == best)
            .values(elite=True)
            .execution_options(synchronize_session="fetch")
        )


def refresh_best(s: Session, run: RunRow) -> None:
    """Choose the Run's fastest passed Candidate again."""
    best = s.execute(
        select(CandidateRow.id, CandidateRow.speedup)
        .where(
            CandidateRow.run_id == run.id,
            CandidateRow.verdict == Verdict.PASSED,
            CandidateRow.speedup.is_not(None),
        )
        .order_by(CandidateRow.speedup.desc(), CandidateRow.id)
        .limit(1)
    ).one_or_none()
    run.best_id, run.best_speedup = (None, None) if best is None else (best.id, best.speedup)
