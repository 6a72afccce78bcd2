"""The state of a search, loaded for one decision in a handful of indexed reads, for any number of Candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import BindParameter, Text, bindparam, case, cast, func, select
from sqlalchemy.orm import Session

from db.bounded_cache import BoundedCache
from db.clock import now
from db.packing import load_baseline
from db.repositories import champions, roofline, runs
from db.repositories.workload_leaders import workload_leaders
from db.tables.core import ArmStat, BaselineRow, CandidateRow, EvaluationRow, ProposalRow, RunRow
from evaluator.languages import usual_language
from evaluator.schema import from_json
from evaluator.types import BaselineReport, DeviceKind, Evaluation, Language, Verdict
from evaluator.units import time_text
from evolution.search import MAX_FAMILIES
from evolution.state import ArmStats, BestSoFar, Broken, Elite, Family, SearchState, StandingChampion
from evolution.tunables import key_of
from evolution.types import Arm, Budget, Fault, Operator, RunConfig

_RECENT = 40
_MOST_ELITES, _MOST_ELITES_EACH = 64, 16
"""Parents come from this many of the fastest designs (or from this many for each island): selection would hardly
ever draw others.
"""
_MOST_SEEN = 16
"""The inner search sees this many Configurations of a family."""
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


# Statements are built once: building one costs as much as running it.
_RUN: BindParameter[str] = bindparam("run_id")
_ELITES = (
    select(
        CandidateRow.id,
        CandidateRow.number,
        CandidateRow.island,
        CandidateRow.language,
        CandidateRow.speedup,
        CandidateRow.speedup_low,
        CandidateRow.confirms,
        CandidateRow.confirmed,
        CandidateRow.outdated,
        CandidateRow.retimed,
        CandidateRow.operator,
        CandidateRow.hash,
    )
    .where(CandidateRow.run_id == _RUN, CandidateRow.elite)
    .order_by(CandidateRow.speedup.desc(), CandidateRow.number)
    .limit(bindparam("most"))
)
# These read only the family index, since Candidate rows are long.
_FAMILIES = (
    select(CandidateRow.family, func.max(CandidateRow.speedup))
    .where(CandidateRow.run_id == _RUN, CandidateRow.family.is_not(None))
    .group_by(CandidateRow.family)
)
# One row a family: a row for each member takes ten times as long.
_WORTH = case((CandidateRow.verdict.is_(None), ""), else_=func.coalesce(cast(CandidateRow.speedup, Text), "0"))
_MEMBERS = (
    select(
        CandidateRow.family,
        func.aggregate_strings(CandidateRow.configuration_key, "\n").label("keys"),
        func.aggregate_strings(_WORTH, "\n").label("worths"),
    )
    .where(CandidateRow.run_id == _RUN, CandidateRow.family.in_(bindparam("families", expanding=True)))
    .group_by(CandidateRow.family)
)
_FASTEST = select(
    CandidateRow.id,
    CandidateRow.family,
    CandidateRow.island,
    CandidateRow.configuration_key,
    CandidateRow.tunables,
).where(
    CandidateRow.run_id == _RUN,
    CandidateRow.family.in_(bindparam("families", expanding=True)),
    CandidateRow.configuration_key.in_(bindparam("keys", expanding=True)),
)
_OPEN_EVALUATIONS = select(EvaluationRow.candidate_id, EvaluationRow.kind).where(
    EvaluationRow.run_id == _RUN, EvaluationRow.state.in_(("building", "judging"))
)
_OPEN_PROPOSALS = select(ProposalRow.operator, ProposalRow.hint).where(
    ProposalRow.run_id == _RUN, ProposalRow.outcome.is_(None)
)
_ARMS = select(ArmStat).where(ArmStat.run_id == _RUN)
_BROKEN = (
    select(CandidateRow.id, CandidateRow.island, CandidateRow.verdict, CandidateRow.repairs)
    .where(
        CandidateRow.run_id == _RUN,
        CandidateRow.number > bindparam("since"),
        CandidateRow.verdict.in_(_MENDABLE),
    )
    .order_by(CandidateRow.number.desc())
    .limit(_MOST_BROKEN)
)


def arm_rows(s: Session, run_id: str) -> Sequence[ArmStat]:
    """Return the counters of every arm that a Run has used."""
    return s.scalars(_ARMS, {"run_id": run_id}).all()


def load(s: Session, run: RunRow, arms: Sequence[ArmStat]) -> SearchState:
    """Load the state of a locked Run. `arms` are its `arm_rows`."""
    s.flush()
    open_evaluations = s.execute(_OPEN_EVALUATIONS, {"run_id": run.id}).all()
    open_proposals = s.execute(_OPEN_PROPOSALS, {"run_id": run.id}).all()
    confirms = sum(row.kind == "confirm" for row in open_evaluations)
    config = from_json(RunConfig, run.config)
    most = max(_MOST_ELITES, _MOST_ELITES_EACH * config.islands)
    rows = s.execute(_ELITES, {"run_id": run.id, "most": most}).all()
    budget = from_json(Budget, run.budget)
    stats = tuple(_arm(row) for row in arms)
    return SearchState(
        config=config,
        budget=budget,
        spend=runs.spend(run, now(s)),
        open_proposals=len(open_proposals),
        open_judgements=len(open_evaluations) - confirms,
        open_confirms=confirms,
        elites=tuple(map(_elite, sorted(rows, key=lambda row: row.number))),
        broken=_broken(s, run),
        arms=stats,
        families=_families(s, run, [row.hint for row in open_proposals]),
        warm_starts=_warm(run, budget),
        champion=_standing(s, run),
        best=_best(s, run),
        since_best=run.since_best,
        judged_any=any(arm.judged for arm in stats),
        judge_s=run.judged_s / run.judged if run.judged else 0.0,
        confirm_s=run.confirmed_s / run.confirmed if run.confirmed else 0.0,
        baseline=_baseline(s, run),
        slots=usual_language(DeviceKind(run.device_kind)) is Language.TRITON,
        shares=workload_leaders(s, run),
    )


def _best(s: Session, run: RunRow) -> BestSoFar | None:
    best = s.get(CandidateRow, run.best_id) if run.best_id is not None else None
    if best is None or best.speedup is None:
        return None
    return BestSoFar(speedup=best.speedup, outdated=best.outdated)


def _standing(s: Session, run: RunRow) -> StandingChampion | None:
    row = champions.standing(s, run.problem_id, DeviceKind(run.device_kind))
    if row is None:
        return None
    source_hash = s.scalars(select(CandidateRow.hash).where(CandidateRow.id == row.candidate_id)).one()
    return StandingChampion(
        candidate_id=row.candidate_id,
        hash=source_hash,
        speedup=row.speedup,
        own=row.run_id == run.id,
        attained=roofline.roofline_share(s, row),
    )


def _elite(row: Any) -> Elite:
    return Elite(
        candidate_id=row.id,
        number=row.number,
        island=row.island,
        language=Language(row.language),
        speedup=row.speedup or 0.0,
        low=row.speedup_low or 0.0,
        confirms=row.confirms,
        confirmed=row.confirmed,
        outdated=row.outdated,
        retimed=row.retimed,
        repaired=row.operator == Operator.REPAIR,
        hash=row.hash,
    )


def _broken(s: Session, run: RunRow) -> tuple[Broken, ...]:
    rows = s.execute(_BROKEN, {"run_id": run.id, "since": run.candidates - _RECENT})
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
        fault=None if row.fault is None else Fault(row.fault),
        faults_in_row=row.faults_in_row,
    )


def _families(s: Session, run: RunRow, hints: Sequence[Mapping[str, Any]]) -> tuple[Family, ...]:
    """Return the Run's fastest families with their results and their open work."""
    found = s.execute(_FAMILIES, {"run_id": run.id})
    fastest = {family: speedup for family, speedup in found if family is not None and speedup is not None}
    chosen = sorted(fastest, key=lambda family: (-fastest[family], family))[:MAX_FAMILIES]
    if not chosen:
        return ()
    members = {
        row.family: sorted(zip(row.worths.split("\n"), row.keys.split("\n"), strict=True), key=_order)
        for row in s.execute(_MEMBERS, {"run_id": run.id, "families": sorted(chosen)})
    }
    keys = sorted({rows[0][1] for rows in members.values()})
    wanted = {"run_id": run.id, "families": sorted(chosen), "keys": keys}
    best = {
        row.family: row for row in s.execute(_FASTEST, wanted) if row.configuration_key == members[row.family][0][1]
    }
    asked = [(hint.get("family"), key_of(hint["configuration"])) for hint in hints if "configuration" in hint]
    return tuple(
        Family(
            family=family,
            candidate_id=best[family].id,
            island=best[family].island,
            tunables={name: tuple(values) for name, values in best[family].tunables.items()},
            seen=_seen(members[family]),
            tried=frozenset({key for _, key in members[family]} | {key for name, key in asked if name == family}),
        )
        for family in chosen
    )


def _order(member: tuple[str, str]) -> tuple[float, str]:
    return -float(member[0] or 0), member[1]


def _seen(members: Sequence[tuple[str, str]]) -> tuple[tuple[dict[str, Any], float], ...]:
    """Return a family's results, fastest first; of many, the fastest half and some of the rest."""
    judged = [member for member in members if member[0]]
    if len(judged) > _MOST_SEEN:
        rest = judged[_MOST_SEEN // 2 :]
        judged = [*judged[: _MOST_SEEN // 2], *rest[:: -(-2 * len(rest) // _MOST_SEEN)]]
    return tuple((json.loads(key), float(worth)) for worth, key in judged)


def _warm(run: RunRow, budget: Budget) -> tuple[str, ...]:
    """Return the chosen seeds and the Champion that stood at the start, to be judged here and used as parents.

    A Run of very few Candidates leaves that Champion out.
    """
    chosen = from_json(RunConfig, run.config).seed_candidates
    few = budget.candidates is not None and budget.candidates < 4
    return chosen if run.warm_id is None or few or run.warm_id in chosen else (*chosen, run.warm_id)


_WORDS: BoundedCache[str, str] = BoundedCache()
"""Cached words on Baselines, by id and time of the report and by the confirmation that timed more of them."""


def _baseline(s: Session, run: RunRow) -> str:
    """Name the fastest Baselines: "eager (12.3 us on decode, 90.1 us on prefill)", and what still compiles.

    A confirmation waits for all modes, so its times replace those of a report that still lacks some.
    """
    row = s.get(BaselineRow, run.baseline_id) if run.baseline_id is not None else None
    if row is None or row.body is None:
        return ""
    later = _last_confirmation(s, run) if row.body["pending"] else None
    key = f"{row.id} {row.settled_at} {later.id if later is not None else ''}"
    if key not in _WORDS:
        report = load_baseline(row.body)
        if later is not None and later.body is not None:
            report = _completed(report, from_json(Evaluation, later.body))
        _WORDS[key] = _baseline_words(report)
    return _WORDS[key]


def _last_confirmation(s: Session, run: RunRow) -> EvaluationRow | None:
    """Return the newest confirmation of a Run that passed every check, promoted or not."""
    row = EvaluationRow
    passed = row.run_id == run.id, row.state == "settled", row.kind == "confirm", row.verdict == Verdict.PASSED
    return s.scalars(select(row).where(*passed).order_by(row.id.desc()).limit(1)).first()


def _completed(report: BaselineReport, confirmed: Evaluation) -> BaselineReport:
    """Return a report with the times of a confirmation, if that timed every shown Workload."""
    times = tuple(time for measurement in confirmed.measurements for time in measurement.baselines)
    if {time.workload for time in times} != {time.workload for time in report.times}:
        return report
    known = {time.mode for time in times}
    return replace(report, times=times, pending=tuple(mode for mode in report.pending if mode not in known))


def _baseline_words(report: BaselineReport) -> str:
    best: dict[str, list[str]] = {}
    for name in dict.fromkeys(time.workload for time in report.times):
        fastest = report.fastest(name)
        best.setdefault(fastest.mode, []).append(f"{time_text(fastest.median_us)} on {name}")
    words = ", ".join(f"{mode} ({', '.join(times)})" for mode, times in best.items())
    return words + (f"; {' and '.join(report.pending)} had not compiled yet" if report.pending else "")
