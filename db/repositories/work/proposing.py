"""The input of a Proposer: the Problem and its facts, the parents with their results, and earlier failures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from db.packing import load_baseline
from db.repositories import candidates, memory
from db.tables.core import AdmissionRow, BaselineRow, CandidateRow, EvaluationRow, ProblemRow, ProposalRow, RunRow
from db.tables.ratios import WorkloadRatioRow
from db.views.work import Approach, Lesson, ParentView, ProposeWork, Upcoming
from evaluator.schema import from_json
from evaluator.types import Admission, DeviceKind, Evaluation, Interval, Language, Problem, Ratio, Stage, Verdict
from evolution.arms import is_free
from evolution.types import Arm, Budget, Operator, RunConfig, RunKind, RunStatus

_RECENT = 200
_MOST_LESSONS = 10
_MOST_TRIED = 1000
_FASTEST = 8  # so many of the fastest earlier answers in a prompt, and as many of the newest
_MOST_RELATIVES = 16
_MOST_UPCOMING = 8
_SAID_CHARACTERS = 320  # a plan of up to three sentences


def propose_work(s: Session, proposal_id: str, *, calls: int) -> ProposeWork:
    """Load everything for one Proposal."""
    proposal = s.get_one(ProposalRow, proposal_id)
    run = s.get_one(RunRow, proposal.run_id)
    admission = _admission(s, run)
    baseline_row = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    baseline = load_baseline(baseline_row.body) if baseline_row is not None and baseline_row.body is not None else None
    device = baseline.device if baseline is not None else admission.device if admission is not None else None
    budget, config = from_json(Budget, run.budget), from_json(RunConfig, run.config)
    problem = from_json(Problem, s.get_one(ProblemRow, run.problem_id).body)
    free = is_free(Arm(proposer=proposal.proposer, operator=Operator(proposal.operator)))
    fresh = proposal.operator == Operator.CREATE and not free
    return ProposeWork(
        proposal_id=proposal.id,
        run_id=run.id,
        number=proposal.number,
        arm=Arm(
            proposer=proposal.proposer,
            operator=Operator(proposal.operator),
            model=proposal.model,
            variant=proposal.variant,
        ),
        arm_number=proposal.arm_number,
        island=proposal.island,
        run_seed=config.seed,
        problem=problem,
        device_kind=DeviceKind(run.device_kind),
        device_name=device.name if device is not None else "",
        device_facts=device.facts if device is not None else {},
        facts=admission.facts if admission is not None else (),
        baseline=baseline,
        parents=tuple(_parent(s, candidate_id) for candidate_id in proposal.parents),
        lessons=_lessons(s, run),
        tried=_tried(s, run),
        varied=tuple(admission.evidence.get("varied_sizes", ())) if admission is not None else (),
        approaches=_approaches(s, run),
        precedents=() if free else memory.precedents(s, run, problem.source),
        remembered=memory.similar_champion(s, run, problem.source) if fresh else None,
        hint=proposal.hint,
        given=_given(s, proposal, config),
        repeats=proposal.repeats,
        calls=calls,
        tokens_left=None if budget.tokens is None else max(0, budget.tokens - run.spent_tokens),
        usd_left=None if budget.usd is None else max(0.0, budget.usd - run.spent_usd),
    )


def upcoming(s: Session) -> tuple[Upcoming, ...]:
    """Return what Proposals will be made for once it is admitted, the oldest Runs first."""
    rows = s.execute(
        select(ProblemRow.body, RunRow.device_kind, RunRow.config)
        .join(RunRow, RunRow.problem_id == ProblemRow.id)
        .where(RunRow.status.in_((RunStatus.QUEUED, RunStatus.ADMITTING)), RunRow.kind == RunKind.OPTIMISE)
        .order_by(RunRow.id)
        .limit(_MOST_UPCOMING)
    )
    return tuple(
        Upcoming(
            problem=from_json(Problem, row.body),
            device_kind=DeviceKind(row.device_kind),
            proposers=tuple(from_json(RunConfig, row.config).proposers),
        )
        for row in rows
    )


def _admission(s: Session, run: RunRow) -> Admission | None:
    row = s.get(AdmissionRow, run.admission_id) if run.admission_id is not None else None
    return None if row is None or row.body is None else from_json(Admission, row.body)


def _given(s: Session, proposal: ProposalRow, config: RunConfig) -> str | None:
    if "seed" in proposal.hint:
        return config.seed_sources[int(proposal.hint["seed"])]
    if "candidate_id" in proposal.hint:
        return s.get_one(CandidateRow, proposal.hint["candidate_id"]).source
    return None


def _parent(s: Session, candidate_id: str) -> ParentView:
    row = s.get_one(CandidateRow, candidate_id)
    evaluation = _newest(s, [candidate_id]).get(candidate_id)
    return ParentView(
        candidate_id=row.id,
        source=row.source,
        language=Language(row.language),
        verdict=None if row.verdict is None else Verdict(row.verdict),
        stage=None if row.stage is None else Stage(row.stage),
        reason=row.reason,
        evidence=evaluation.evidence if evaluation is not None else {},
        resources=evaluation.resources if evaluation is not None else {},
        measurements=evaluation.measurements if evaluation is not None else (),
        ratios=_ratios(s, row, evaluation),
        outdated=row.outdated,
        configuration=row.configuration,
        relatives=_relatives(s, row),
        plan=_plan(s, row),
    )


def _newest(s: Session, candidate_ids: Sequence[str]) -> dict[str, Evaluation]:
    """Return the newest settled Evaluation of each Candidate, without samples."""
    rows = s.execute(
        select(EvaluationRow.candidate_id, EvaluationRow.body)
        .where(
            EvaluationRow.candidate_id.in_(candidate_ids),
            EvaluationRow.state == "settled",
            EvaluationRow.body.is_not(None),
        )
        .order_by(EvaluationRow.ordinal)
    )
    return {row.candidate_id: from_json(Evaluation, row.body) for row in rows}


def _ratios(s: Session, row: CandidateRow, evaluation: Evaluation | None) -> tuple[Ratio, ...]:
    """Return the speedups over the fastest Baseline: estimates where a later one overtook that of the Evaluation."""
    found = () if evaluation is None else tuple(one for one in evaluation.speedups if one.against == "fastest")
    if not row.outdated:
        return found
    estimates = {
        one.workload: Ratio(
            against="fastest",
            value=one.speedup,
            interval=Interval(low=one.low, high=one.high),
            workload=one.workload,
        )
        for one in s.scalars(select(WorkloadRatioRow).where(WorkloadRatioRow.candidate_id == row.id))
    }
    whole = candidates.ratio(row)
    return tuple(one for one in (whole, *(estimates.get(r.workload) for r in found if r.workload)) if one is not None)


def _relatives(s: Session, parent: CandidateRow) -> tuple[Approach, ...]:
    """Return the other judged Configurations of a parent, fastest first."""
    if parent.family is None:
        return ()
    rows = s.scalars(
        select(CandidateRow)
        .where(
            CandidateRow.run_id == parent.run_id,
            CandidateRow.family == parent.family,
            CandidateRow.id != parent.id,
            CandidateRow.verdict.is_not(None),
        )
        .order_by(CandidateRow.speedup.desc().nulls_last(), CandidateRow.number)
        .limit(_MOST_RELATIVES)
    ).all()
    judged = _newest(s, [row.id for row in rows])
    return tuple(_approach(s, row, judged.get(row.id), "") for row in rows)


def _approach(s: Session, row: CandidateRow, evaluation: Evaluation | None, said: str) -> Approach:
    return Approach(
        number=row.number,
        language=Language(row.language),
        niche=row.niche,
        verdict=None if row.verdict is None else Verdict(row.verdict),
        stage=Stage(row.stage or Stage.SCREEN),
        reason=row.reason,
        said=said,
        speedup=row.speedup,
        measurements=evaluation.measurements if evaluation is not None else (),
        ratios=_ratios(s, row, evaluation),
        outdated=row.outdated,
        configuration=row.configuration,
    )


def _lessons(s: Session, run: RunRow) -> tuple[Lesson, ...]:
    """Return the most frequent failures among the newest Candidates, one for each verdict and reason."""
    rows = s.execute(
        select(
            CandidateRow.verdict,
            CandidateRow.stage,
            CandidateRow.reason,
            CandidateRow.language,
            func.max(CandidateRow.id).label("newest"),
            func.count().label("count"),
        )
        .where(
            CandidateRow.run_id == run.id,
            CandidateRow.number > run.candidates - _RECENT,
            CandidateRow.verdict.not_in((Verdict.PASSED, Verdict.INTERNAL_ERROR)),
        )
        .group_by(CandidateRow.verdict, CandidateRow.stage, CandidateRow.reason, CandidateRow.language)
        .order_by(func.count().desc(), func.max(CandidateRow.id).desc())
        .limit(_MOST_LESSONS)
    )
    return tuple(
        Lesson(
            verdict=Verdict(row.verdict),
            stage=Stage(row.stage),
            reason=row.reason,
            language=Language(row.language),
            candidate_id=row.newest,
            count=row[5],
        )
        for row in rows
    )


def _approaches(s: Session, run: RunRow) -> tuple[Approach, ...]:
    """Return the fastest and the newest earlier answers, fastest first, without the tuner's values.

    Candidates that are still being judged are included, so that a model does not write one again.
    """
    under_way = select(EvaluationRow.candidate_id).where(
        EvaluationRow.run_id == run.id, EvaluationRow.state.in_(("building", "judging"))
    )
    answers = (
        select(CandidateRow)
        .where(
            CandidateRow.run_id == run.id,
            CandidateRow.operator != Operator.TUNE,
            or_(CandidateRow.verdict != Verdict.INTERNAL_ERROR, CandidateRow.id.in_(under_way)),
        )
        .limit(_FASTEST)
    )
    fastest = answers.where(CandidateRow.speedup.is_not(None)).order_by(
        CandidateRow.speedup.desc(), CandidateRow.number
    )
    found = {
        row.id: row for query in (fastest, answers.order_by(CandidateRow.number.desc())) for row in s.scalars(query)
    }
    rows = sorted(found.values(), key=lambda row: (-(row.speedup or 0.0), -row.number))
    judged = _newest(s, list(found))
    plans = _plans(s, rows)
    short = {row.id: textwrap.shorten(plans[row.proposal_id], _SAID_CHARACTERS, placeholder=" ...") for row in rows}
    return tuple(_approach(s, row, judged.get(row.id), short[row.id]) for row in rows)


def _plans(s: Session, rows: Sequence[CandidateRow]) -> dict[str, str]:
    """Return the plans of Candidates' Proposals by the Proposals' ids."""
    asked = [row.proposal_id for row in rows]
    found = s.execute(select(ProposalRow.id, ProposalRow.plan).where(ProposalRow.id.in_(asked)))
    return {row.id: row.plan for row in found}


def _plan(s: Session, row: CandidateRow) -> str:
    """Return the plan behind a Candidate; for another Configuration that of the first of its family that has one."""
    own = _plans(s, [row])[row.proposal_id]
    if own or row.family is None:
        return own
    of_family = (
        select(ProposalRow.plan)
        .join(CandidateRow, CandidateRow.proposal_id == ProposalRow.id)
        .where(CandidateRow.run_id == row.run_id, CandidateRow.family == row.family, ProposalRow.plan != "")
    )
    return s.scalars(of_family.order_by(CandidateRow.number).limit(1)).one_or_none() or ""


def _tried(s: Session, run: RunRow) -> tuple[str, ...]:
    rows = s.execute(
        select(CandidateRow.hash, CandidateRow.signature)
        .where(CandidateRow.run_id == run.id)
        .order_by(CandidateRow.number.desc())
        .limit(_MOST_TRIED)
    )
    return tuple(value for row in rows for value in row if value is not None)
