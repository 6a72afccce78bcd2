"""Settle Evaluations: results of Candidates, the archive, and promotions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.packing import clean, store_evaluation
from db.queues import JobKind, Nudge
from db.repositories import champions
from db.tables.core import CandidateRow, ChampionRow, EvaluationRow, RunRow
from db.tables.queue import JobRow
from db.transitions.access.projects import charge
from db.transitions.admission import ATTEMPTS
from db.transitions.events import emit
from db.transitions.records.archive import IMPROVEMENT, refresh_best, refresh_elite
from db.transitions.records.arms import stat_of
from db.transitions.records.history import count_evaluation, record_best, record_champion, record_device_use
from db.transitions.records.overtaken import rescale_evaluation, scale_speedups
from db.transitions.records.ratios import drop_ratios, store_ratios
from db.transitions.work.enqueue import end_run, enqueue_advance, enqueue_job, finish_job, retry_job
from db.transitions.work.locks import lock_job, lock_problem, lock_run
from db.views.rows import Job
from evaluator.schema import to_json
from evaluator.types import SCHEMA_VERSION, DeviceKind, Evaluation, Verdict
from evolution.bandit import confirmed_reward, judged_reward
from evolution.types import EndReason, RunStatus

FAULTS = 5
"""A Run ends after this many internal errors in a row: a broken judge must not use up a night."""


def add_evaluation(
    s: Session, run: RunRow, candidate: CandidateRow, *, kind: str, state: str, against_id: str | None = None
) -> EvaluationRow:
    """Create an open Evaluation of a Candidate, numbered after its last."""
    last = s.scalars(
        select(EvaluationRow.ordinal)
        .where(EvaluationRow.candidate_id == candidate.id)
        .order_by(EvaluationRow.ordinal.desc())
        .limit(1)
    ).one_or_none()
    row = EvaluationRow(
        id=new_id("eval"),
        candidate_id=candidate.id,
        run_id=run.id,
        ordinal=(last or 0) + 1,
        kind=kind,
        state=state,
        against_id=against_id,
        schema_version=SCHEMA_VERSION,
        created_at=now(s),
    )
    s.add(row)
    s.flush()
    return row


def retry_internal(row: JobRow) -> bool:
    """Tell whether an internal error may be tried again."""
    return row.attempts < ATTEMPTS


def settle_judge(s: Session, job: Job, evaluation: Evaluation) -> list[Nudge]:
    """Store the Evaluation and its samples, update the archive. INTERNAL_ERROR is retried up to the cap."""
    row = lock_job(s, job)
    if row is None:
        return []
    if evaluation.verdict is Verdict.INTERNAL_ERROR and retry_internal(row):
        return retry_job(s, row, evaluation.reason)
    return close_evaluation(s, row, evaluation)


def settle_confirm(s: Session, job: Job, evaluation: Evaluation) -> list[Nudge]:
    """Store the Evaluation; promote where evidence['promote'] is true."""
    return settle_judge(s, job, evaluation)


def close_evaluation(s: Session, row: JobRow, evaluation: Evaluation) -> list[Nudge]:
    """Settle the Evaluation of a locked, claimed Job, for any verdict."""
    found = s.get_one(EvaluationRow, row.subject_id)
    candidate = s.get_one(CandidateRow, found.candidate_id)
    if found.kind == "confirm":
        lock_problem(s, candidate.problem_id)
    run = lock_run(s, found.run_id)
    finish_job(s, row)
    if found.state not in ("building", "judging"):
        return []
    if found.kind == "confirm":
        return _confirmed(s, run, candidate, found, evaluation)
    return store_verdict(s, run, candidate, found, evaluation)


def _store(s: Session, found: EvaluationRow, evaluation: Evaluation) -> float:
    """Fill the row; return the device seconds to charge (none for an internal error)."""
    found.state, found.settled_at = "settled", now(s)
    found.verdict, found.stage, found.reason = evaluation.verdict, evaluation.stage, clean(evaluation.reason)
    found.device_name = evaluation.device.name if evaluation.device is not None else None
    found.environment_key = evaluation.environment.key if evaluation.environment is not None else None
    found.body = store_evaluation(s, found.id, evaluation)
    found.schema_version = evaluation.schema_version
    record_device_use(s, evaluation)
    ours = evaluation.verdict is Verdict.INTERNAL_ERROR
    found.device_s = 0.0 if ours else sum(evaluation.duration_s.values())
    return found.device_s


def store_verdict(
    s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow, evaluation: Evaluation
) -> list[Nudge]:
    """Store the result of the build or the judge."""
    device_s = _store(s, found, evaluation)
    passed = evaluation.verdict is Verdict.PASSED
    best_before = run.best_speedup
    run.spent_device_s += device_s
    charge(s, run.project_id, device_s=device_s)
    count_evaluation(s, run, "judge", evaluation, device_s)
    again = candidate.verdict is not None
    if evaluation.verdict is Verdict.INTERNAL_ERROR:
        if not again:
            candidate.verdict, candidate.stage, candidate.reason = Verdict.INTERNAL_ERROR, found.stage, found.reason
            run.spent_candidates -= 1
        return _our_fault(s, run, candidate, found)
    run.faults = 0
    _describe(candidate, evaluation)
    store_ratios(s, candidate, evaluation)
    scale = rescale_evaluation(s, run, evaluation)
    if scale is not None:
        scale_speedups(s, run, scale, CandidateRow.id == candidate.id)
    refresh_elite(s, candidate)
    refresh_best(s, run)
    record_best(s, run)
    if passed:
        run.judged += 1
        run.judged_s += device_s
    stat = stat_of(s, candidate)
    stat.device_s += device_s
    if again:
        _tell(s, run, candidate, found)
        return enqueue_advance(s, run)
    improved = passed and candidate.speedup is not None and candidate.speedup > (best_before or 0.0) * IMPROVEMENT
    run.since_best = 0 if improved else run.since_best + 1
    stat.judged += 1
    stat.passed += passed
    stat.reward += judged_reward(candidate.speedup, best_before) if passed else 0.0
    _tell(s, run, candidate, found)
    return enqueue_advance(s, run)


def _describe(candidate: CandidateRow, evaluation: Evaluation) -> None:
    """Take over a result: its speedup is over the Baselines of its own session, so it is not outdated."""
    candidate.outdated = candidate.retimed = False
    candidate.verdict, candidate.stage, candidate.reason = (
        evaluation.verdict,
        evaluation.stage,
        clean(evaluation.reason),
    )
    ratio = evaluation.speedup("fastest") if evaluation.verdict is Verdict.PASSED else None
    candidate.speedup = ratio.value if ratio is not None else None
    candidate.speedup_low = ratio.interval.low if ratio is not None else None
    candidate.speedup_high = ratio.interval.high if ratio is not None else None
    candidate.confidence = ratio.interval.confidence if ratio is not None else None


def _our_fault(s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow) -> list[Nudge]:
    """Leave the Candidate uncharged; end a Run with a judge that keeps failing, with a message."""
    run.faults += 1
    _tell(s, run, candidate, found)
    if run.faults >= FAULTS and not RunStatus(run.status).ended:
        message = f"The judge failed {FAULTS} times in a row with an internal error: {found.reason}"
        end_run(s, run, RunStatus.FAILED, EndReason.INTERNAL_ERROR, message)
    return enqueue_advance(s, run)


def _tell(s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow, **more: object) -> None:
    emit(
        s,
        run.id,
        "evaluation.settled",
        evaluation_id=found.id,
        candidate_id=candidate.id,
        number=candidate.number,
        kind=found.kind,
        verdict=found.verdict,
        stage=found.stage,
        reason=found.reason,
        speedup=candidate.speedup,
        outdated=candidate.outdated,
        elite=candidate.elite,
        **more,
    )


def _confirmed(
    s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow, evaluation: Evaluation
) -> list[Nudge]:
    device_s = _store(s, found, evaluation)
    run.spent_device_s += device_s
    charge(s, run.project_id, device_s=device_s)
    count_evaluation(s, run, "confirm", evaluation, device_s)
    if evaluation.verdict is Verdict.INTERNAL_ERROR:
        return _our_fault(s, run, candidate, found)
    run.faults = 0
    run.confirmed += 1
    run.confirmed_s += device_s
    stat_of(s, candidate).device_s += device_s
    _describe(candidate, evaluation)  # what the later, longer session says is what is shown from now on
    if evaluation.verdict is not Verdict.PASSED:
        drop_ratios(s, candidate)
        refresh_elite(s, candidate)  # a relative that was only judged does not take the place of one that was confirmed
    refresh_best(s, run)
    record_best(s, run)
    if evaluation.evidence.get("promote") is True and evaluation.speedup("fastest") is not None:
        return _promote(s, run, candidate, found, evaluation)
    # its speedups by Workload, which a dispatch is made by, are known better now
    store_ratios(s, candidate, evaluation)
    ratio = evaluation.speedup("fastest")
    _tell(
        s, run, candidate, found,
        promoted=False, confirmed=None if ratio is None else ratio.value, why_not=list(why_not(evaluation)),
    )  # fmt: skip
    return enqueue_advance(s, run)


def why_not(evaluation: Evaluation) -> tuple[str, ...]:
    """Return in words the rules that forbade a promotion; the verdict and its reason where that was it."""
    if evaluation.verdict is not Verdict.PASSED:
        return (f"{evaluation.verdict.value}: {evaluation.reason}",)
    decision = evaluation.evidence.get("confirm")
    words = decision.get("why_not") if isinstance(decision, Mapping) else None
    return tuple(str(word) for word in words) if isinstance(words, Sequence) and not isinstance(words, str) else ()


def _promote(
    s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow, evaluation: Evaluation
) -> list[Nudge]:
    """Promote the Candidate; if another was promoted meanwhile, confirm it against that one instead."""
    ratio = evaluation.speedup("fastest")
    _tell(s, run, candidate, found, promoted=True, confirmed=None if ratio is None else ratio.value, why_not=[])
    standing = champions.standing(s, run.problem_id, DeviceKind(run.device_kind))
    if (standing.candidate_id if standing is not None else None) != found.against_id:
        if RunStatus(run.status).ended:
            return []
        assert standing is not None
        return enqueue_confirmation(s, run, candidate, standing.candidate_id)
    make_champion(s, run, candidate, found, evaluation)
    return enqueue_advance(s, run)


def enqueue_confirmation(s: Session, run: RunRow, candidate: CandidateRow, against_id: str | None) -> list[Nudge]:
    """Have a Candidate confirmed against a Champion (None: there is none)."""
    candidate.confirms += 1
    again = add_evaluation(s, run, candidate, kind="confirm", state="judging", against_id=against_id)
    return enqueue_job(
        s, JobKind.CONFIRM, again.id, project_id=run.project_id, device_kind=DeviceKind(run.device_kind), run=run
    )


def retime(s: Session, run: RunRow, candidate: CandidateRow, *, first: bool) -> list[Nudge]:
    """Have a Candidate judged again, against Baselines of which a later one is faster; `first`: before waiting work.

    Its speedup stays an estimate until then.
    """
    candidate.retimed = True
    again = add_evaluation(s, run, candidate, kind="judge", state="judging")
    kind = DeviceKind(run.device_kind)
    return enqueue_job(s, JobKind.JUDGE, again.id, project_id=run.project_id, device_kind=kind, run=run, urgent=first)


def make_champion(
    s: Session, run: RunRow, candidate: CandidateRow, found: EvaluationRow, evaluation: Evaluation
) -> None:
    """Make a confirmed Candidate the standing Champion of its Problem on its device. The Problem is locked."""
    assert evaluation.device is not None
    ratio, eager = evaluation.speedup("fastest"), evaluation.speedup("eager")
    assert ratio is not None
    standing = s.scalars(
        select(ChampionRow).where(
            ChampionRow.problem_id == run.problem_id,
            ChampionRow.device_kind == run.device_kind,
            ChampionRow.device_name == evaluation.device.name,
            ChampionRow.standing,
        )
    ).one_or_none()
    if standing is not None:
        standing.standing = False
        s.flush()
    stat_of(s, candidate).reward += confirmed_reward(ratio.value, standing.speedup if standing is not None else None)
    candidate.confirmed = True
    run.champion_id = candidate.id
    record_champion(s, run, candidate, ratio)
    s.add(
        ChampionRow(
            id=new_id("champ"),
            project_id=run.project_id,
            problem_id=run.problem_id,
            run_id=run.id,
            candidate_id=candidate.id,
            evaluation_id=found.id,
            device_kind=run.device_kind,
            device_name=evaluation.device.name,
            standing=True,
            speedup=ratio.value,
            against_fastest=to_json(ratio),
            against_eager=to_json(eager) if eager is not None else None,
            fastest_baseline=_comparator(evaluation),
            roofline=_roofline(evaluation),
            promoted_at=now(s),
        )
    )
    emit(
        s,
        run.id,
        "champion.promoted",
        candidate_id=candidate.id,
        number=candidate.number,
        evaluation_id=found.id,
        speedup=ratio.value,
        low=ratio.interval.low,
        device=evaluation.device.name,
    )


def _roofline(evaluation: Evaluation) -> float | None:
    """Return the geometric mean over Workloads of floor / time, between 0 and 1; None where a floor is not known."""
    shares = [min(1.0, m.floor_us / m.median_us) for m in evaluation.measurements if m.floor_us]
    if not shares or len(shares) < len(evaluation.measurements):
        return None
    return math.exp(sum(math.log(share) for share in shares) / len(shares))


def _comparator(evaluation: Evaluation) -> str:
    """Return the fastest Baselines' modes, one name where they agree over the Workloads."""
    modes = {min(m.baselines, key=lambda t: t.median_us).mode: None for m in evaluation.measurements if m.baselines}
    return ", ".join(modes) or "unknown"
