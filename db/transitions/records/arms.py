"""The counters of an arm, updated by the transitions so that a decision reads a handful of rows."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.tables.core import ArmStat, CandidateRow, ProposalRow
from evolution.types import Arm


def arm_stat(s: Session, run_id: str, arm: Arm) -> ArmStat:
    """Return the counters of a Run's arm, created at its first use. The Run's row must be locked."""
    found = s.get(ArmStat, (run_id, arm.proposer, arm.operator.value, arm.model, arm.variant))
    if found is None:
        found = ArmStat(
            run_id=run_id,
            proposer=arm.proposer,
            operator=arm.operator.value,
            model=arm.model,
            variant=arm.variant,
        )
        s.add(found)
        s.flush()
    return found


def stat_of(s: Session, row: ProposalRow | CandidateRow) -> ArmStat:
    """Return the counters of the arm behind a Proposal or Candidate."""
    return s.get_one(ArmStat, (row.run_id, row.proposer, row.operator, row.model, row.variant))
