"""Inject a Candidate that a person or an agent wrote into a live Run."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import now
from db.errors import Conflict, NotFound
from db.queues import Nudge
from db.repositories import proposals, runs
from db.tables.core import CandidateRow, RunRow
from db.transitions.proposing import open_proposal, store_proposal
from db.transitions.work.locks import lock_run
from db.views.work import ProposalResult
from evaluator.schema import from_json
from evaluator.types import Candidate
from evolution.arms import EXTERNAL
from evolution.types import Arm, Budget, Operator, Proposal, ProposalOutcome, Propose, RunKind, RunStatus

_OPEN = (RunStatus.RUNNING, RunStatus.PAUSED)


def inject_candidate(
    s: Session,
    run_id: str,
    candidate: Candidate,
    *,
    by: str = "hand",
    detail: str = "",
    project_id: str | None = None,
) -> tuple[Proposal, list[Nudge]]:
    """Have a Candidate judged in a running or paused Run, along with the search's own.

    `candidate.parents` are Candidates of this Run; `by` names its author. It uses one of the Run's candidates. A source
    that the Run already has is not charged: the Proposal then says `duplicate` and names it. Raise NotFound (the Run,
    a parent), Conflict (the Run is not live, or the budget is used up).
    """
    run = lock_run(s, run_id, project_id)
    _check(s, run)
    island = _island(s, run, candidate.parents)
    arm = Arm(proposer=f"{EXTERNAL}:{by}", operator=Operator.REWRITE if candidate.parents else Operator.CREATE)
    row = open_proposal(s, run, Propose(arm=arm, island=island, parents=candidate.parents))
    result = ProposalResult(
        outcome=ProposalOutcome.CANDIDATE,
        source=candidate.source,
        language=candidate.language,
        detail=detail or "given by hand",
    )
    nudges = store_proposal(s, run, row, result)
    s.flush()
    return proposals.get(s, row.id), nudges


def _check(s: Session, run: RunRow) -> None:
    if run.kind == RunKind.JUDGE:
        raise Conflict(f"run {run.id} judges one candidate; submit another one on its own")
    paused_early = run.status == RunStatus.PAUSED and run.started_at is None
    if run.status not in _OPEN or paused_early:
        raise Conflict(f"run {run.id} is {run.status}; a candidate can be injected while it is running or paused")
    used = from_json(Budget, run.budget).used_up(runs.spend(run, now(s)))
    if used:
        raise Conflict(f"run {run.id} has used up its budget of {used[0]}: extend it first")


def _island(s: Session, run: RunRow, parents: tuple[str, ...]) -> int:
    """Return the first parent's island, else the islands in turn. Raise NotFound for a parent of another Run."""
    rows = s.execute(
        select(CandidateRow.id, CandidateRow.island).where(CandidateRow.run_id == run.id, CandidateRow.id.in_(parents))
    )
    islands: dict[str, int] = {row.id: row.island for row in rows}
    for parent in parents:
        if parent not in islands:
            raise NotFound("candidate", parent)
    return islands[parents[0]] if parents else run.proposals % int(run.config["islands"])
