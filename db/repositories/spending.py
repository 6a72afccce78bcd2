"""Spend by model, by Proposer and by project: sums over the Runs' counters, not over Proposals."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.tables.core import ArmStat, RunRow
from db.views.rows import SpendRow

MOST = 1000


def by_model(s: Session, project_id: str) -> tuple[SpendRow, ...]:
    """Return the spend of a project by model; a Proposer without a model stands under its own name."""
    name = func.coalesce(func.nullif(ArmStat.model, ""), ArmStat.proposer)
    query = (
        select(
            name.label("name"),
            func.sum(ArmStat.asked),
            func.sum(ArmStat.candidates),
            func.sum(ArmStat.passed),
            func.sum(ArmStat.tokens),
            func.sum(ArmStat.usd),
            func.sum(ArmStat.device_s),
        )
        .join(RunRow, RunRow.id == ArmStat.run_id)
        .where(RunRow.project_id == project_id)
        .group_by(name)
        .order_by(func.sum(ArmStat.usd).desc(), name)
        .limit(MOST)
    )
    return tuple(
        SpendRow(
            name=row[0], runs=None, proposals=row[1], candidates=row[2], passed=row[3], tokens=row[4], usd=row[5],
            device_s=row[6],
        )
        for row in s.execute(query)
    )  # fmt: skip


def by_project(s: Session, project_id: str | None = None) -> tuple[SpendRow, ...]:
    """Return the use of each project's Runs, or of one project's."""
    query = (
        select(
            RunRow.project_id,
            func.count(),
            func.sum(RunRow.proposals),
            func.sum(RunRow.candidates),
            func.sum(RunRow.spent_tokens),
            func.sum(RunRow.spent_usd),
            func.sum(RunRow.spent_device_s),
        )
        .group_by(RunRow.project_id)
        .order_by(func.sum(RunRow.spent_usd).desc(), RunRow.project_id)
        .limit(MOST)
    )
    if project_id is not None:
        query = query.where(RunRow.project_id == project_id)
    return tuple(
        SpendRow(
            name=row[0], runs=row[1], proposals=row[2], candidates=row[3], passed=None, tokens=row[4], usd=row[5],
            device_s=row[6],
        )
        for row in s.execute(query)
    )  # fmt: skip
