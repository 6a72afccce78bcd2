"""The archive of elites as columns: the fastest passed Candidate of each design carries `elite`.

A design is a family, or a source without Tunables.
"""

from __future__ import annotations

from sqlalchemy import Update, select, update
from sqlalchemy.orm import Session

from db.tables.core import CandidateRow, RunRow
from evaluator.types import Verdict

IMPROVEMENT = 1.01


def refresh_elite(s: Session, candidate: CandidateRow) -> None:
    """Choose the elite of a Candidate's design again, after its result has changed."""
    if candidate.family is None:
        candidate.elite = candidate.verdict == Verdict.PASSED and candidate.speedup is not None
        return
    s.flush()
    design = CandidateRow.run_id == candidate.run_id, CandidateRow.family == candidate.family
    best = s.scalars(
        select(CandidateRow.id)
        .where(*design, CandidateRow.verdict == Verdict.PASSED, CandidateRow.speedup.is_not(None))
        .order_by(CandidateRow.speedup.desc(), CandidateRow.number)
        .limit(1)
    ).one_or_none()
    _mark(s, update(CandidateRow).where(*design, CandidateRow.elite, CandidateRow.id != (best or "")), elite=False)
    if best is not None:
        _mark(s, update(CandidateRow).where(CandidateRow.id == best), elite=True)


def _mark(s: Session, which: Update, *, elite: bool) -> None:
    s.execute(which.values(elite=elite).execution_options(synchronize_session="fetch"))


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
