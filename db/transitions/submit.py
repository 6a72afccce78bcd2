"""Judge-only work: one submitted Candidate, judged by the same queue and the same judge.

It lives in a Run of its own kind, so that admission, Baselines, budgets, events and the leaderboard need no exception.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.ids import new_id
from db.queues import Nudge
from db.repositories import evaluations
from db.tables.core import EvaluationRow, RunRow
from db.transitions.access.projects import check_quota
from db.transitions.begin import seek_admission
from db.transitions.events import emit
from db.transitions.proposing import open_proposal, store_proposal
from db.transitions.work.locks import lock_problem
from db.views.rows import EvaluationRecord
from db.views.work import ProposalResult
from evaluator.schema import to_json
from evaluator.types import Candidate, DeviceKind
from evolution.arms import EXTERNAL
from evolution.types import Arm, Budget, Operator, ProposalOutcome, Propose, RunConfig, RunKind, RunStatus


def submit_candidate(
    s: Session, project_id: str, problem_id: str, device_kind: DeviceKind, candidate: Candidate, *, by: str
) -> tuple[EvaluationRecord, list[Nudge]]:
    """Have a Candidate judged, and confirmed if it beats the Champion. `by` names its author.

    Its Evaluation exists at once; its build is enqueued when the Problem is admitted and its Baselines are timed.
    Raise NotFound, QuotaExceeded.
    """
    check_quota(s, project_id)
    lock_problem(s, problem_id, project_id)
    budget = Budget(candidates=1)
    config = RunConfig(proposers=(), islands=1, in_flight=1)
    run = RunRow(
        id=new_id("run"),
        project_id=project_id,
        problem_id=problem_id,
        kind=RunKind.JUDGE,
        device_kind=device_kind,
        status=RunStatus.QUEUED,
        budget=to_json(budget),
        config=to_json(config),
        created_at=now(s),
    )
    s.add(run)
    s.flush()
    emit(
        s,
        run.id,
        "run.created",
        problem_id=problem_id,
        device=device_kind.value,
        budget=to_json(budget),
        forked_from=None,
    )
    arm = Arm(proposer=f"{EXTERNAL}:{by}", operator=Operator.CREATE)
    proposal = open_proposal(s, run, Propose(arm=arm, island=0))
    result = ProposalResult(
        outcome=ProposalOutcome.CANDIDATE, source=candidate.source, language=candidate.language, detail="handed in"
    )
    store_proposal(s, run, proposal, result)
    nudges = seek_admission(s, run)
    found = s.scalars(select(EvaluationRow.id).where(EvaluationRow.run_id == run.id)).one()
    return evaluations.get(s, found), nudges
