"""The expected use of a Run, from the recent use of similar Runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.repositories.runs import wall_s
from db.tables.core import RunRow
from db.views.rows import Expectation
from evaluator.types import DeviceKind
from evolution.types import RunKind

LOOKED_AT = 200
USED = 20


def expectation(s: Session, project_id: str, device_kind: DeviceKind) -> Expectation | None:
    """Estimate from the newest ended searches of a project on a device kind; None where none has judged anything."""
    newest = s.scalars(
        select(RunRow).where(RunRow.project_id == project_id).order_by(RunRow.id.desc()).limit(LOOKED_AT)
    )
    like = [
        row
        for row in newest
        if row.device_kind == device_kind
        and row.kind == RunKind.OPTIMISE
        and row.ended_at is not None
        and row.spent_candidates > 0
    ][:USED]
    if not like:
        return None
    confirms = [row.confirmed_s / row.confirmed for row in like if row.confirmed]
    return Expectation(
        runs=len(like),
        device_s=_reach([(row.spent_device_s - row.confirmed_s) / row.spent_candidates for row in like]),
        wall_s=_reach([wall_s(row, row.ended_at) / row.spent_candidates for row in like if row.ended_at is not None]),
        usd=_reach([row.spent_usd / row.spent_candidates for row in like]),
        confirm_s=statistics.median(confirms) if confirms else 0.0,
    )


def _reach(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), statistics.median(values), max(values)
