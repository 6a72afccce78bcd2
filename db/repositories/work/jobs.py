"""Reads of the queue: the payload of a claimed Job."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.packing import load_baseline
from db.queues import JobKind, device_queue
from db.repositories.work import proposing, webhooks
from db.repositories.workload_leaders import best_speedups
from db.tables.core import AdmissionRow, BaselineRow, CandidateRow, EvaluationRow, ProblemRow, RunRow
from db.tables.queue import JobRow
from db.views.rows import Job
from db.views.work import AdmitWork, BaselineWork, BuildWork, ConfirmWork, JudgeWork, WorkItem
from evaluator.schema import from_json
from evaluator.types import BaselineReport, BuildReport, Candidate, DeviceKind, Language, Problem
from evolution.types import RunKind


def job_of(row: JobRow, lease: str) -> Job:
    """Return the claim of a Job by a lease."""
    return Job(
        id=row.id,
        kind=row.kind,
        queue=row.queue,
        run_id=row.run_id,
        subject_id=row.subject_id,
        project_id=row.project_id,
        attempt=row.attempts,
        lease=lease,
        request_id=row.request_id,
    )


def payload(s: Session, job: Job) -> WorkItem | None:
    """Return all that a worker needs; None for an advance Job, which needs nothing, or for a lost claim."""
    row = s.get(JobRow, job.id, populate_existing=True)
    if row is None or row.state != "claimed" or row.lease != job.lease:
        return None
    makers: dict[JobKind, Callable[[Session, str], WorkItem]] = {
        JobKind.ADMIT: _admit,
        JobKind.BASELINE: _baseline,
        JobKind.BUILD: _build,
        JobKind.JUDGE: judge_work,
        JobKind.CONFIRM: _confirm,
        JobKind.WEBHOOK: webhooks.work,
    }
    kind = JobKind(job.kind)
    if kind is JobKind.PROPOSE:
        return proposing.propose_work(s, job.subject_id, calls=row.attempts)
    maker = makers.get(kind)
    return None if maker is None else maker(s, job.subject_id)


def problem_of(s: Session, problem_id: str) -> Problem:
    return from_json(Problem, s.get_one(ProblemRow, problem_id).body)


def baseline_of(s: Session, run: RunRow) -> BaselineReport | None:
    """Return the Baselines that a Run compares with, without samples."""
    row = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    return None if row is None or row.body is None else load_baseline(row.body)


def candidate_of(row: CandidateRow) -> Candidate:
    """Return a stored Candidate with its source."""
    return Candidate(
        source=row.source, language=Language(row.language), parents=tuple(row.parents), proposer=row.proposer
    )


def _admit(s: Session, subject_id: str) -> AdmitWork:
    row = s.get_one(AdmissionRow, subject_id)
    return AdmitWork(problem=problem_of(s, row.problem_id), device_kind=DeviceKind(row.device_kind))


def _baseline(s: Session, subject_id: str) -> BaselineWork:
    row = s.get_one(BaselineRow, subject_id)
    queue = device_queue(DeviceKind(row.device_kind))
    ready = select(JobRow.id).where(JobRow.queue == queue, JobRow.state == "ready")
    return BaselineWork(
        problem=problem_of(s, row.problem_id),
        device_kind=DeviceKind(row.device_kind),
        baseline=None if row.body is None else load_baseline(row.body),
        patient=not s.scalar(select(ready.exists())),
    )


def _subject(s: Session, subject_id: str) -> tuple[EvaluationRow, CandidateRow, RunRow]:
    evaluation = s.get_one(EvaluationRow, subject_id)
    return evaluation, s.get_one(CandidateRow, evaluation.candidate_id), s.get_one(RunRow, evaluation.run_id)


def _build(s: Session, subject_id: str) -> BuildWork:
    evaluation, candidate, run = _subject(s, subject_id)
    return BuildWork(
        evaluation_id=evaluation.id,
        candidate_id=candidate.id,
        problem=problem_of(s, run.problem_id),
        candidate=candidate_of(candidate),
        device_kind=DeviceKind(run.device_kind),
    )


def judge_work(s: Session, subject_id: str) -> JudgeWork:
    """Return what a judgement needs, by the Evaluation's id."""
    evaluation, candidate, run = _subject(s, subject_id)
    return JudgeWork(
        evaluation_id=evaluation.id,
        candidate_id=candidate.id,
        problem=problem_of(s, run.problem_id),
        candidate=candidate_of(candidate),
        device_kind=DeviceKind(run.device_kind),
        baseline=baseline_of(s, run),
        build=None if candidate.build is None else from_json(BuildReport, candidate.build),
        quick=run.kind == RunKind.OPTIMISE,
        best=best_speedups(s, run, besides=candidate.id),
    )


def _confirm(s: Session, subject_id: str) -> ConfirmWork:
    evaluation, candidate, run = _subject(s, subject_id)
    champion = s.get_one(CandidateRow, evaluation.against_id) if evaluation.against_id is not None else None
    return ConfirmWork(
        evaluation_id=evaluation.id,
        candidate_id=candidate.id,
        problem=problem_of(s, run.problem_id),
        candidate=candidate_of(candidate),
        device_kind=DeviceKind(run.device_kind),
        baseline=baseline_of(s, run),
        champion_id=evaluation.against_id,
        champion=None if champion is None else candidate_of(champion),
    )
