"""Extend a Run: more budget for a live Run, or for an ended one, which then continues."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import Conflict
from db.queues import JobKind, Nudge
from db.repositories import champions, runs
from db.tables.core import ArmStat, CandidateRow, EvaluationRow, RunRow
from db.transitions.access.projects import check_quota
from db.transitions.events import emit
from db.transitions.judging import add_evaluation
from db.transitions.work.enqueue import enqueue_advance, enqueue_job
from db.transitions.work.locks import lock_run
from evaluator.schema import from_json, to_json
from evaluator.types import DeviceKind
from evolution.types import Budget, EndReason, Run, RunConfig, RunKind, RunStatus

MOST_WALL_S = 1e10
"""Three centuries: a deadline is a date."""
_GOES_ON = (EndReason.BUDGET, EndReason.STAGNATED, EndReason.NO_IMPROVEMENT, EndReason.TARGET_REACHED)


def extend_run(
    s: Session,
    run_id: str,
    more: Budget,
    *,
    target_speedup: float | None = None,
    project_id: str | None = None,
) -> tuple[Run, list[Nudge]]:
    """Add `more` to a Run's budget; a limit that the Run does not have stays absent.

    A Run that ended by budget, stagnation or its target continues. `target_speedup` replaces the Run's. Raise NotFound;
    Conflict where the Run was cancelled or failed, or would end again at once (the message says what to add), or where
    its time exceeds MOST_WALL_S; QuotaExceeded where it would live again.
    """
    run = lock_run(s, run_id, project_id)
    if run.kind == RunKind.JUDGE:
        raise Conflict(f"run {run_id} judges one candidate; only a search can be extended")
    budget = from_json(Budget, run.budget).plus(more)
    if budget.wall_s is not None and budget.wall_s > MOST_WALL_S:
        raise Conflict(f"run {run_id} may take {MOST_WALL_S:g} wall_s in all at most: add less")
    config = from_json(RunConfig, run.config)
    if target_speedup is not None:
        config = dataclasses.replace(config, target_speedup=target_speedup)
    ended = RunStatus(run.status).ended
    if ended:
        _check(s, run, budget, config)
        check_quota(s, run.project_id)
    run.budget, run.config = to_json(budget), to_json(config)
    moment = now(s)
    if ended:
        assert run.ended_at is not None
        run.paused_s += (moment - run.ended_at).total_seconds()
        run.status, run.end_reason, run.message, run.ended_at = RunStatus.RUNNING, None, "", None
        run.since_best = run.faults = 0
    if run.started_at is not None and budget.wall_s is not None:
        at = run.paused_at or moment
        run.deadline_at = at + timedelta(seconds=budget.wall_s - runs.wall_s(run, at))
    emit(s, run.id, "run.extended", budget=to_json(budget), target_speedup=config.target_speedup, revived=ended)
    nudges: list[Nudge] = []
    if ended:
        emit(s, run.id, "run.status", status=run.status)
        nudges += _revive(s, run)
    return runs.get(s, run_id), sorted({*nudges, *enqueue_advance(s, run)})


def _check(s: Session, run: RunRow, budget: Budget, config: RunConfig) -> None:
    """Raise Conflict where the ended Run cannot continue."""
    if run.end_reason == EndReason.ROOFLINE_REACHED:
        raise Conflict(
            f"run {run.id} ended at the memory roofline ({run.end_reason}) and would end again at once: fork it with "
            "another roofline_share, or with null to search on regardless"
        )
    if run.status != RunStatus.FINISHED or run.end_reason not in _GOES_ON:
        raise Conflict(
            f"run {run.id} ended as {run.status} ({run.end_reason}); only one that ran out of budget, stagnated or "
            "reached its target can be extended: fork it, or start a new one"
        )
    spent = runs.spend(run, now(s))
    used = budget.used_up(spent)
    if used:
        name, most = used[0], getattr(budget, used[0])
        raise Conflict(
            f"run {run.id} would end again at once: with this it may use {most:.10g} {name}, and has used "
            f"{getattr(spent, name):.10g}: add more {name}"
        )
    standing = champions.standing(s, run.problem_id, DeviceKind(run.device_kind))
    target = config.target_speedup
    if target is not None and standing is not None and standing.speedup >= target:
        raise Conflict(
            f"run {run.id} has its target: the champion runs {standing.speedup:.2f} times as fast; give a "
            f"target_speedup above that"
        )


def _revive(s: Session, run: RunRow) -> list[Nudge]:
    """Reset every arm's exhaustion, and enqueue work that was dropped when the Run ended."""
    s.execute(
        update(ArmStat)
        .where(ArmStat.run_id == run.id)
        .values(errors_in_row=0, faults_in_row=0, exhausted=False, broke=False)
    )
    nudges: list[Nudge] = []
    for candidate in _unjudged(s, run):
        evaluation = add_evaluation(s, run, candidate, kind="judge", state="building")
        nudges += enqueue_job(
            s, JobKind.BUILD, evaluation.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind), run=run
        )
    for candidate in _unconfirmed(s, run):
        candidate.confirms = 0
    outdated = CandidateRow.run_id == run.id, CandidateRow.outdated
    s.execute(update(CandidateRow).where(*outdated).values(retimed=False))
    return nudges


def _unjudged(s: Session, run: RunRow) -> list[CandidateRow]:
    """Return Candidates that were paid for and never judged, because the Run ended first."""
    going_on = (
        select(EvaluationRow.id)
        .where(
            EvaluationRow.candidate_id == CandidateRow.id,
            EvaluationRow.state.in_(("building", "judging", "duplicate", "settled")),
        )
        .exists()
    )
    query = select(CandidateRow).where(CandidateRow.run_id == run.id, CandidateRow.verdict.is_(None), ~going_on)
    return list(s.scalars(query.order_by(CandidateRow.number)))


def _unconfirmed(s: Session, run: RunRow) -> list[CandidateRow]:
    """Return Candidates with a confirmation that was dropped at the end of the Run: they may be confirmed again."""
    confirms = select(EvaluationRow.candidate_id).where(EvaluationRow.run_id == run.id, EvaluationRow.kind == "confirm")
    query = select(CandidateRow).where(
        CandidateRow.id.in_(confirms.where(EvaluationRow.state == "cancelled")),
        CandidateRow.id.not_in(confirms.where(EvaluationRow.state != "cancelled")),
    )
    return list(s.scalars(query.order_by(CandidateRow.number)))
