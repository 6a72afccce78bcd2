"""Reads of Evaluations."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, defer

from db.clock import iso
from db.errors import NotFound
from db.packing import load_evaluations, unpack
from db.tables.core import CandidateRow, EvaluationRow, RunRow, SampleRow
from db.views.rows import EvaluationRecord, EvaluationView, Samples
from db.visible import candidate_visible
from evaluator.types import DeviceKind, Evaluation, Stage, Verdict


def for_candidate(s: Session, candidate_id: str, *, samples: bool = True) -> tuple[Evaluation, ...]:
    """Return settled Evaluations, oldest first; without `samples` each Measurement carries its median alone."""
    rows = s.scalars(_settled(candidate_id)).all()
    return tuple(load_evaluations(s, {row.id: row.body for row in rows if row.body is not None}, samples=samples))


def list(s: Session, candidate_id: str) -> tuple[EvaluationView, ...]:
    """List settled Evaluations, oldest first, with their ids and kinds, without samples."""
    rows = [row for row in s.scalars(_settled(candidate_id)) if row.body is not None]
    whole = load_evaluations(s, {row.id: row.body for row in rows if row.body is not None}, samples=False)
    return tuple(
        EvaluationView(
            id=row.id,
            candidate_id=row.candidate_id,
            kind=row.kind,
            evaluation=evaluation,
            created_at=iso(row.created_at) or "",
            settled_at=iso(row.settled_at) or "",
        )
        for row, evaluation in zip(rows, whole, strict=True)
    )


def _settled(candidate_id: str) -> Select[EvaluationRow]:
    return (
        select(EvaluationRow)
        .where(EvaluationRow.candidate_id == candidate_id, EvaluationRow.state == "settled")
        .order_by(EvaluationRow.ordinal)
    )


def get(s: Session, evaluation_id: str, *, project_id: str | None = None) -> EvaluationRecord:
    """Return one Evaluation with its result, if settled. Raise NotFound."""
    query = select(EvaluationRow, RunRow).join(RunRow, RunRow.id == EvaluationRow.run_id)
    if project_id is not None:
        query = query.join(CandidateRow, CandidateRow.id == EvaluationRow.candidate_id)
        query = query.where(candidate_visible(project_id))
    found = s.execute(query.where(EvaluationRow.id == evaluation_id)).one_or_none()
    if found is None:
        raise NotFound("evaluation", evaluation_id)
    return _record(s, found[0], found[1], result=True)


def of_candidate(s: Session, candidate_id: str) -> tuple[EvaluationRecord, ...]:
    """List every Evaluation of a Candidate, oldest first, with results. There are few."""
    query = select(EvaluationRow, RunRow).join(RunRow, RunRow.id == EvaluationRow.run_id)
    query = query.where(EvaluationRow.candidate_id == candidate_id).order_by(EvaluationRow.ordinal)
    return tuple(_record(s, row, run, result=True) for row, run in s.execute(query))


def of_run(
    s: Session,
    run_id: str,
    *,
    limit: int = 50,
    after: str | None = None,
    state: str | None = None,
    verdict: Verdict | None = None,
) -> tuple[EvaluationRecord, ...]:
    """List newest first, without results; `after` is the last id of the previous page."""
    query = select(EvaluationRow).options(defer(EvaluationRow.body)).where(EvaluationRow.run_id == run_id)
    if state is not None:
        query = query.where(EvaluationRow.state == state)
    if verdict is not None:
        query = query.where(EvaluationRow.verdict == verdict)
    if after is not None:
        query = query.where(EvaluationRow.id < after)
    run = s.get_one(RunRow, run_id)
    rows = s.scalars(query.order_by(EvaluationRow.id.desc()).limit(limit))
    return tuple(_record(s, row, run, result=False) for row in rows)


def samples(s: Session, evaluation_id: str) -> tuple[Samples, ...]:
    """Return every raw sample of an Evaluation, by Workload and series; empty where samples were dropped."""
    rows = s.scalars(
        select(SampleRow).where(SampleRow.owner_id == evaluation_id).order_by(SampleRow.workload, SampleRow.series)
    )
    return tuple(Samples(workload=row.workload, series=row.series, samples_us=unpack(row.data)) for row in rows)


def _record(s: Session, row: EvaluationRow, run: RunRow, *, result: bool) -> EvaluationRecord:
    body = row.body if result else None
    return EvaluationRecord(
        id=row.id,
        candidate_id=row.candidate_id,
        run_id=row.run_id,
        problem_id=run.problem_id,
        device_kind=DeviceKind(run.device_kind),
        kind=row.kind,
        state=row.state,
        against_id=row.against_id,
        verdict=None if row.verdict is None else Verdict(row.verdict),
        stage=None if row.stage is None else Stage(row.stage),
        reason=row.reason,
        device_name=row.device_name,
        device_s=row.device_s,
        created_at=iso(row.created_at) or "",
        settled_at=iso(row.settled_at),
        result=None if body is None else load_evaluations(s, {row.id: body}, samples=False)[0],
    )
