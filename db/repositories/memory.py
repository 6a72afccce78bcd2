"""Results of earlier Runs on similar Problems: Champions by the reference's operations, on such a device."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from db.tables.core import AdmissionRow, CandidateRow, ChampionRow, ProblemRow, RunRow
from db.tables.lessons import LessonRow
from db.views.work import Precedent, Remembered
from evaluator.schema import from_json
from evaluator.types import Language
from evolution.fingerprint import fingerprint, similarity
from evolution.lessons import TunableLesson, describe

LEAST_LIKENESS = 0.5
_NEWEST = 200
MOST_PRECEDENTS = 8
_PER_PROBLEM = 4


def similar_champion(s: Session, run: RunRow, reference: str) -> Remembered | None:
    """Return the Champion of the most similar other Problem, own or public; of equally similar ones the faster."""
    wanted = fingerprint(reference)
    rows = s.execute(
        select(ChampionRow.candidate_id, ChampionRow.speedup, ProblemRow.name, ProblemRow.body)
        .join(ProblemRow, ProblemRow.id == ChampionRow.problem_id)
        .where(
            ChampionRow.standing,
            ChampionRow.device_kind == run.device_kind,
            ChampionRow.problem_id != run.problem_id,
            or_(ProblemRow.project_id == run.project_id, ProblemRow.public),
        )
        .order_by(ChampionRow.id.desc())
        .limit(_NEWEST)
    ).all()
    alike = [(similarity(wanted, fingerprint(str(row.body["source"]))), row.speedup, row) for row in rows]
    fit = [item for item in alike if item[0] >= LEAST_LIKENESS]
    if not fit:
        return None
    row = max(fit, key=lambda item: (item[0], item[1]))[2]
    candidate = s.get_one(CandidateRow, row.candidate_id)
    return Remembered(
        problem=row.name, speedup=row.speedup, language=Language(candidate.language), source=candidate.source
    )


def precedents(s: Session, run: RunRow, reference: str) -> tuple[Precedent, ...]:
    """Return lessons of earlier Runs on similar Problems on a device of this name, own or public.

    The most similar Problem comes first, with its surest lessons; of equally sure ones the newest.
    """
    admission = s.get(AdmissionRow, run.admission_id) if run.admission_id is not None else None
    if admission is None or admission.body is None or admission.body["device"] is None:
        return ()
    rows = s.execute(
        select(LessonRow.problem_id, LessonRow.body, LessonRow.sizes, ProblemRow.name, ProblemRow.body.label("problem"))
        .join(ProblemRow, ProblemRow.id == LessonRow.problem_id)
        .where(
            LessonRow.device_kind == run.device_kind,
            LessonRow.device_name == admission.body["device"]["name"],
            LessonRow.run_id != run.id,
            or_(ProblemRow.project_id == run.project_id, ProblemRow.public),
        )
        .order_by(LessonRow.id.desc())
        .limit(_NEWEST)
    ).all()
    wanted = fingerprint(reference)
    alike = {row.problem_id: similarity(wanted, fingerprint(str(row.problem["source"]))) for row in rows}
    found: dict[tuple[object, ...], tuple[float, Precedent]] = {}
    for row in rows:
        lesson = from_json(TunableLesson, row.body)
        key = row.problem_id, lesson.language, lesson.tunable, lesson.workload
        if alike[row.problem_id] >= LEAST_LIKENESS and key not in found:
            made = Precedent(problem=row.name, sizes=row.sizes, lesson=lesson)
            found[key] = alike[row.problem_id], made
    ordered = sorted(found.values(), key=lambda item: (-item[0], item[1].problem, -item[1].lesson.low))
    counts: dict[str, int] = {}
    kept = []
    for _, one in ordered:
        counts[one.problem] = counts.get(one.problem, 0) + 1
        if counts[one.problem] <= _PER_PROBLEM:
            kept.append(one)
    return tuple(kept[:MOST_PRECEDENTS])


def lessons_of(s: Session, run_id: str) -> tuple[str, ...]:
    """Return the lessons of an ended Run, a line each, the surest first."""
    bodies = s.scalars(select(LessonRow.body).where(LessonRow.run_id == run_id))
    found = sorted((from_json(TunableLesson, body) for body in bodies), key=lambda one: -one.low)
    return tuple(describe(one) for one in found)
