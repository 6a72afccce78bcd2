"""The data behind a Run's pages: milestones, tallies, arms. Its size is bounded for any length of Run."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables.core import ArmStat, ChampionRow
from db.tables.history import MilestoneRow, TallyRow
from db.views.rows import ArmView, ChampionView, Milestone, Tally
from evaluator.schema import from_json
from evaluator.types import Interval, Ratio, Stage, Verdict

MOST_MILESTONES = 600


def milestones(s: Session, run_id: str) -> tuple[Milestone, ...]:
    """Return the newest MOST_MILESTONES milestones, in order."""
    rows = s.scalars(
        select(MilestoneRow)
        .where(MilestoneRow.run_id == run_id)
        .order_by(MilestoneRow.ordinal.desc())
        .limit(MOST_MILESTONES)
    ).all()
    return tuple(
        Milestone(
            candidate_id=row.candidate_id,
            number=row.number,
            speedup=Ratio(
                against="fastest",
                value=row.speedup,
                interval=Interval(low=row.speedup_low, high=row.speedup_high),
            ),
            confirmed=row.confirmed,
            evaluations=row.evaluations,
            device_s=row.device_s,
            wall_s=row.wall_s,
            usd=row.usd,
            at=iso(row.at) or "",
        )
        for row in reversed(rows)
    )


def tallies(s: Session, run_id: str) -> tuple[Tally, ...]:
    """Count every way in which a Run's Evaluations ended: at most verdicts times stages times three."""
    return tuple(
        Tally(
            kind=row.kind,
            stage=Stage(row.stage),
            verdict=Verdict(row.verdict),
            number=row.number,
            device_s=row.device_s,
        )
        for row in s.scalars(select(TallyRow).where(TallyRow.run_id == run_id))
    )


def arms(s: Session, run_id: str) -> tuple[ArmView, ...]:
    """Return every arm of a Run with its requests, costs and results, best first."""
    rows = s.scalars(select(ArmStat).where(ArmStat.run_id == run_id)).all()
    views = [
        ArmView(**{name: getattr(row, name) for name in ArmView.__dataclass_fields__}) for row in rows
    ]  # fmt: skip
    return tuple(sorted(views, key=lambda arm: (-arm.reward, -arm.passed, arm.proposer, arm.operator)))


def champions_of(s: Session, run_id: str, *, limit: int = 20) -> tuple[ChampionView, ...]:
    """Return the promotions of a Run, newest first."""
    rows = s.scalars(
        select(ChampionRow).where(ChampionRow.run_id == run_id).order_by(ChampionRow.id.desc()).limit(limit)
    )
    return tuple(champion_view(row) for row in rows)


def promotion_of(s: Session, run_id: str, candidate_id: str) -> ChampionView | None:
    """Return the newest promotion of a Candidate, or None."""
    row = s.scalars(
        select(ChampionRow)
        .where(ChampionRow.run_id == run_id, ChampionRow.candidate_id == candidate_id)
        .order_by(ChampionRow.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else champion_view(row)


def newest_champions(s: Session, run_ids: Sequence[str]) -> dict[str, ChampionView]:
    """Return the newest promotion of each of a page of Runs."""
    rows = s.scalars(select(ChampionRow).where(ChampionRow.run_id.in_(run_ids)).order_by(ChampionRow.id))
    return {row.run_id: champion_view(row) for row in rows}


def of_problem(s: Session, problem_id: str, *, limit: int = 100) -> tuple[ChampionView, ...]:
    """Return the promotions of a Problem on all devices, newest first."""
    rows = s.scalars(
        select(ChampionRow).where(ChampionRow.problem_id == problem_id).order_by(ChampionRow.id.desc()).limit(limit)
    )
    return tuple(champion_view(row) for row in rows)


def champion_view(row: ChampionRow) -> ChampionView:
    return ChampionView(
        candidate_id=row.candidate_id,
        run_id=row.run_id,
        device_kind=row.device_kind,
        device_name=row.device_name,
        standing=row.standing,
        against_fastest=from_json(Ratio, row.against_fastest),
        against_eager=None if row.against_eager is None else from_json(Ratio, row.against_eager),
        fastest_baseline=row.fastest_baseline,
        promoted_at=iso(row.promoted_at) or "",
    )
