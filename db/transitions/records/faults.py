"""Faults of models: the row of equal ones of each arm, and the end of an arm or a model with such a row."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.tables.core import ArmStat, ProposalRow, RunRow
from db.transitions.events import emit
from db.transitions.records.arms import stat_of
from evolution.arms import STOP_AFTER, is_free
from evolution.types import Arm, Fault, Operator


def count_fault(s: Session, run: RunRow, proposal: ProposalRow, fault: Fault | None) -> None:
    """Count the fault of a model's answer, or with None its new Candidate, which ends the row.

    A fault of the model counts for all its arms, and so does any fault before its first Candidate. Duplicates that were
    in flight together count once: only an arm that was told of one and repeats itself has two in a row.
    """
    if is_free(Arm(proposer=proposal.proposer, operator=Operator(proposal.operator))):
        return
    own, arms = stat_of(s, proposal), _of_model(s, proposal)
    if fault is None:
        for arm in arms:
            if arm is own or arm.fault is None or Fault(arm.fault).of_model:
                arm.fault, arm.faults_in_row = None, 0
        return
    whole = fault.of_model or not any(arm.candidates for arm in arms)
    counted = arms if whole else [own]
    before = max((arm.faults_in_row for arm in counted if arm.fault == fault), default=0)
    row = max(before, proposal.repeats + 1) if fault is Fault.DUPLICATE else before + 1
    for arm in counted:
        arm.fault, arm.faults_in_row = fault, row
    if before < STOP_AFTER <= row:
        emit(
            s,
            run.id,
            "proposer.stopped",
            proposer=proposal.proposer,
            operator=None if whole else proposal.operator,
            fault=fault.value,
            detail=proposal.detail,
        )


def _of_model(s: Session, proposal: ProposalRow) -> Sequence[ArmStat]:
    query = select(ArmStat).where(
        ArmStat.run_id == proposal.run_id,
        ArmStat.proposer == proposal.proposer,
        ArmStat.model == proposal.model,
    )
    return s.scalars(query.order_by(ArmStat.operator, ArmStat.variant)).all()
