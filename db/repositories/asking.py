"""What a Proposer is told: the Problem, its facts, the parents with what the judge said, and what has failed."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.packing import load_baseline
from db.repositories import memory
from db.repositories.candidates import ratio
from db.tables import AdmissionRow, BaselineRow, CandidateRow, EvaluationRow, ProblemRow, ProposalRow, RunRow
from db.texts import load_text
from db.work import Approach, Lesson, ParentView, ProposeWork
from evaluator.schema import from_json
from evaluator.types import Admission, DeviceKind, Evaluation, Language, Problem, Stage, Verdict
from evolution.arms import is_free
from evolution.types import Arm, Budget, Operator, RunConfig

_RECENT = 200
_MOST_LESSONS = 10
_MOST_TRIED = 1000
_MOST_APPROACHES = 6
_SAID_CHARACTERS = 240


def propose_work(s: Session, proposal_id: str, *, calls: int) -> ProposeWork:
    """Everything for one Proposal."""
    proposal = s.get_one(ProposalRow, proposal_id)
    run = s.get_one(RunRow, proposal.run_id)
    admission = _admission(s, run)
    baseline_row = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    baseline = load_baseline(baseline_row.body) if baseline_row is not None and baseline_row.body is not None else None
    device = baseline.device if baseline is not None else admission.device if admission is not None else None
    budget, config = from_json(Budget, run.budget), from_json(RunConfig, run.config)
    problem = from_json(Problem, s.get_one(ProblemRow, run.problem_id).body)
    fresh = proposal.operator == Operator.CREATE and not is_free(
        Arm(proposer=proposal.proposer, operator=Operator.CREATE)
    )
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
        approaches=_approaches(s, run),
        remembered=memory.similar_champion(s, run, problem.source) if fresh else None,
        hint=proposal.hint,
        given=_given(s, proposal, config),
        calls=calls,
        tokens_left=None if budget.tokens is None else max(0, budget.tokens - run.spent_tokens),
        usd_left=None if budget.usd is None else max(0.0, budget.usd - run.spent_usd),
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
    body = s.scalars(
        select(EvaluationRow.body)
        .where(EvaluationRow.candidate_id == candidate_id, EvaluationRow.state == "settled")
        .order_by(EvaluationRow.ordinal.desc())
        .limit(1)
    ).one_or_none()
    evaluation = None if body is None else from_json(Evaluation, body)
    return ParentView(
        candidate_id=row.id,
        source=row.source,
        language=Language(row.language),
        verdict=None if row.verdict is None else Verdict(row.verdict),
        stage=None if row.stage is None else Stage(row.stage),
        reason=row.reason,
        evidence=evaluation.evidence if evaluation is not None else {},
        resources=evaluation.resources if evaluation is not None else {},
        speedup=ratio(row),
        workload_us={m.workload: m.median_us for m in evaluation.measurements} if evaluation is not None else {},
        configuration=row.configuration,
    )


def _lessons(s: Session, run: RunRow) -> tuple[Lesson, ...]:
    """The most frequent failures among the newest Candidates, one for each verdict and reason."""
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
    """The fastest elites, one for each niche."""
    rows = s.execute(
        select(CandidateRow.speedup, CandidateRow.language, CandidateRow.niche, ProposalRow.reply_parts)
        .join(ProposalRow, ProposalRow.id == CandidateRow.proposal_id)
        .where(CandidateRow.run_id == run.id, CandidateRow.elite)
        .order_by(CandidateRow.speedup.desc(), CandidateRow.number)
        .limit(4 * _MOST_APPROACHES)
    )
    first: dict[str, Approach] = {}
    for row in rows:
        if row.niche not in first and len(first) < _MOST_APPROACHES:
            words = load_text(s, run.id, row.reply_parts).partition("```")[0].partition("<<<<<<<")[0]
            said = " ".join(words.split())[:_SAID_CHARACTERS]
            first[row.niche] = Approach(
                speedup=row.speedup or 0.0, language=Language(row.language), niche=row.niche, said=said
            )
    return tuple(first.values())


def _tried(s: Session, run: RunRow) -> tuple[str, ...]:
    rows = s.execute(
        select(CandidateRow.hash, CandidateRow.signature)
        .where(CandidateRow.run_id == run.id)
        .order_by(CandidateRow.number.desc())
        .limit(_MOST_TRIED)
    )
    return tuple(value for row in rows for value in row if value is not None)
