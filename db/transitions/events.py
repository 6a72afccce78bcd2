"""Events of a Run, appended in the transaction that causes them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from db.clock import now
from db.tables.core import EventRow, RunRow


def emit(s: Session, run_id: str, kind: str, /, **data: Any) -> int:
    """Append an event and return its `seq`.

    The Run's row stays locked until then, so `seq` is gap-free and in commit order.
    """
    seq = s.scalars(
        update(RunRow)
        .where(RunRow.id == run_id)
        .values(last_seq=RunRow.last_seq + 1)
        .returning(RunRow.last_seq)
        .execution_options(synchronize_session=False)
    ).one()
    s.add(EventRow(run_id=run_id, seq=seq, kind=kind, data=data, created_at=now(s)))
    return seq
