"""A Champion's share of its device's roofline, from its confirmation."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.bounded_cache import BoundedCache
from db.tables.core import AdmissionRow, ChampionRow, EvaluationRow, ProblemRow, RunRow
from evaluator.schema import from_json
from evaluator.types import Admission, Evaluation, Problem
from evolution.roofline import attained

_KNOWN: BoundedCache[str, float | None] = BoundedCache()
"""Keyed by the confirming Evaluation, which never changes."""


def roofline_share(s: Session, champion: ChampionRow) -> float | None:
    """Return the reached share of the memory roofline; None where it is not known well enough."""
    if champion.evaluation_id not in _KNOWN:
        _KNOWN[champion.evaluation_id] = _attained(s, champion)
    return _KNOWN[champion.evaluation_id]


def _attained(s: Session, champion: ChampionRow) -> float | None:
    evaluation = s.get_one(EvaluationRow, champion.evaluation_id)
    admission = s.get(AdmissionRow, s.get_one(RunRow, champion.run_id).admission_id or "")
    if evaluation.body is None or admission is None or admission.body is None:
        return None
    problem = from_json(Problem, s.get_one(ProblemRow, champion.problem_id).body)
    return attained(
        from_json(Evaluation, evaluation.body),
        [one for one in problem.workloads if one.device in (None, champion.device_kind)],
        from_json(Admission, admission.body).facts,
    )
