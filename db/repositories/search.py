"""The state of a search, loaded for one decision: a handful of indexed reads, however many Candidates there are."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.clock import now
from db.packing import load_baseline
from db.repositories import champions, runs
from db.tables import ArmStat, BaselineRow, CandidateRow, EvaluationRow, ProposalRow, RunRow
from evaluator.schema import from_json
from evaluator.types import DeviceKind, Language, Verdict
from evolution.search import tuned_families
from evolution.state import ArmStats, Broken, Elite, SearchState, Standing
from evolution.tunables import key_of
from evolution.types import Arm, Budget, Operator, RunConfig

_RECENT = 40
_MOST_BROKEN = 8
_MENDABLE = (
    Verdict.INVALID_SUBMISSION,
    Verdict.BUILD_ERROR,
    Verdict.RUNTIME_ERROR,
    Verdict.TIMEOUT,
    Verdict.OUT_OF_MEMORY,
    Verdict.INCORRECT_SHAPE,
    Verdict.INCORRECT_DTYPE,
    Verdict.INCORRECT_VALUES,
    Verdict.NONDETERMINISTIC,
)


def load(s: Session, run: RunRow) -> SearchState:
    """The state of a locked Run."""
    s.flush()
    elites = _elites(s, run)
    open_judgements, open_confirms = _open(s, run.id)
    budget = from_json(Budget, run.budget)
    arms = tuple(_arm(row) for row in s.scalars(select(ArmStat).where(ArmStat.run_id == run.id)))
    return SearchState(
        config=from_json(RunConfig, run.config),
        budget=budget,
        spend=runs.spend(run, now(s)),
        proposals=run.proposals,
        open_proposals=_open_proposals(s, run.id),
        open_judgements=open_judgements,
        open_confirms=open_confirms,
        elites=elites,
        broken=_broken(s, run),
        arms=arms,
        tried=_tried(s, run.id, tuned_families(elites)),
        warm=_warm(run, budget),
        champion=_standing(s, run),
        since_best=run.since_best,
        judged_any=any(arm.judged for arm in arms),
        judge_s=run.judged_s / run.judged if run.judged else 0.0,
        confirm_s=run.confirmed_s / run.confirmed if run.confirmed else 0.0,
        baseline=_baseline(s, run),
    )


def _standing(s: Session, run: RunRow) -> Standing | None:
    row = champions.standing(s, run.problem_id, DeviceKind(run.device_kind))
    if row is None:
        return None
    source_hash = s.scalars(select(CandidateRow.hash).where(CandidateRow.id == row.candidate_id)).one()
    return Standing(candidate_id=row.candidate_id, hash=source_hash, speedup=row.speedup, own=row.run_id == run.id)


def _elites(s: Session, run: RunRow) -> tuple[Elite, ...]:
    rows = s.execute(
        select(
            CandidateRow.id,
            CandidateRow.number,
            CandidateRow.island,
            CandidateRow.niche,
            CandidateRow.language,
            CandidateRow.speedup,
            CandidateRow.speedup_low,
            CandidateRow.times_judged,
            CandidateRow.confirms,
            CandidateRow.confirmed,
            CandidateRow.hash,
            CandidateRow.family,
            CandidateRow.tunables,
            CandidateRow.configuration,
        ).where(CandidateRow.run_id == run.id, CandidateRow.elite)
    ).all()
    pending = set(
        s.scalars(
            select(EvaluationRow.candidate_id).where(
                EvaluationRow.run_id == run.id, EvaluationRow.state.in_(("building", "judging"))
            )
        )
    )
    return tuple(
        Elite(
            candidate_id=row.id,
            number=row.number,
            island=row.island,
            niche=row.niche,
            language=Language(row.language),
            speedup=row.speedup or 0.0,
            low=row.speedup_low or 0.0,
            times_judged=row.times_judged,
            pending=row.id in pending,
            confirms=row.confirms,
            confirmed=row.confirmed,
            hash=row.hash,
            family=row.family,
            tunables={name: tuple(values) for name, values in row.tunables.items()},
            configuration=row.configuration,
        )
        for row in sorted(rows, key=lambda row: row.number)
    )


def _open(s: Session, run_id: str) -> tuple[int, int]:
    counts = dict(
        s.execute(
            select(EvaluationRow.kind, func.count())
            .where(EvaluationRow.run_id == run_id, EvaluationRow.state.in_(("building", "judging")))
            .group_by(EvaluationRow.kind)
        ).all()
    )
    return counts.get("judge", 0), counts.get("confirm", 0)


def _open_proposals(s: Session, run_id: str) -> int:
    return s.scalars(
        select(func.count()).select_from(ProposalRow).where(ProposalRow.run_id == run_id, ProposalRow.outcome.is_(None))
    ).one()


def _broken(s: Session, run: RunRow) -> tuple[Broken, ...]:
    rows = s.execute(
        select(CandidateRow.id, CandidateRow.island, CandidateRow.verdict, CandidateRow.repairs)
        .where(
            CandidateRow.run_id == run.id,
            CandidateRow.number > run.candidates - _RECENT,
            CandidateRow.verdict.in_(_MENDABLE),
        )
        .order_by(CandidateRow.number.desc())
        .limit(_MOST_BROKEN)
    )
    return tuple(
        Broken(candidate_id=row.id, island=row.island, verdict=Verdict(row.verdict), repairs=row.repairs)
        for row in rows
    )


def _arm(row: ArmStat) -> ArmStats:
    return ArmStats(
        arm=Arm(proposer=row.proposer, operator=Operator(row.operator), model=row.model, variant=row.variant),
        asked=row.asked,
        settled=row.settled,
        candidates=row.candidates,
        judged=row.judged,
        passed=row.passed,
        reward=row.reward,
        tokens=row.tokens,
        usd=row.usd,
        propose_s=row.propose_s,
        device_s=row.device_s,
        errors_in_row=row.errors_in_row,
        exhausted=row.exhausted,
        broke=row.broke,
    )


def _tried(s: Session, run_id: str, families: set[str]) -> dict[str, frozenset[str]]:
    """The Configurations tried of each family: those of Candidates, and those asked for and still open."""
    if not families:
        return {}
    tried: dict[str, set[str]] = {family: set() for family in families}
    rows = s.execute(
        select(CandidateRow.family, CandidateRow.configuration_key).where(
            CandidateRow.run_id == run_id, CandidateRow.family.in_(families)
        )
    )
    for family, key in rows:
        if family is not None and key is not None:
            tried[family].add(key)
    asked = s.execute(
        select(ProposalRow.parents, ProposalRow.hint).where(
            ProposalRow.run_id == run_id, ProposalRow.outcome.is_(None), ProposalRow.operator == Operator.TUNE
        )
    ).all()
    parents = {parent for row in asked for parent in row.parents}
    family_by_id = dict(
        s.execute(select(CandidateRow.id, CandidateRow.family).where(CandidateRow.id.in_(parents))).all()
    )
    for row in asked:
        family = family_by_id.get(row.parents[0])
        if family in tried:
            tried[family].add(key_of(row.hint["configuration"]))
    return {family: frozenset(keys) for family, keys in tried.items()}


def _warm(run: RunRow, budget: Budget) -> tuple[str, ...]:
    """What was chosen to begin with, and the Champion that stood at the start: judged here and bred from.

    A Run of very few Candidates leaves that Champion out.
    """
    chosen = from_json(RunConfig, run.config).seed_candidates
    few = budget.candidates is not None and budget.candidates < 4
    return chosen if run.warm_id is None or few or run.warm_id in chosen else (*chosen, run.warm_id)


def _baseline(s: Session, run: RunRow) -> str:
    """The fastest Baselines in words: "max-autotune-no-cudagraphs (12.3 us on decode)"."""
    row = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    if row is None or row.body is None:
        return ""
    report = load_baseline(row.body)
    names = list(dict.fromkeys(time.workload for time in report.times))
    best = [report.fastest(name) for name in names]
    return ", ".join(f"{time.mode} ({time.median_us:.4g} us on {time.workload})" for time in best)
