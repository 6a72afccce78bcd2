"""Decisions as text that is equal in a Run and in its replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.schema import to_json
from evaluator.types import canonical_json, content_hash
from evolution.types import Confirm, Decision, Finish, Propose, Retime


def candidate_ids(decision: Decision) -> tuple[str, ...]:
    """Return the ids of the Candidates in a decision."""
    match decision:
        case Propose():
            return decision.parents
        case Confirm() | Retime():
            return (decision.candidate_id,)
        case Finish():
            return ()


def describe(decisions: Sequence[Decision], numbers: Mapping[str, int]) -> list[str]:
    """Return a line for each: "propose synthesiser/create @0 from 3,4 #1f00". `numbers` maps Candidates' ids."""
    return [
        _line(decision, ",".join(str(numbers.get(id, 0)) for id in candidate_ids(decision))) for decision in decisions
    ]


def _line(decision: Decision, of: str) -> str:
    match decision:
        case Propose(arm=arm, island=island, hint=hint):
            who = "/".join(part for part in (arm.proposer, arm.model, arm.operator.value) if part)
            kept = {key: value for key, value in hint.items() if key != "candidate_id"}
            mark = f" #{content_hash(canonical_json(to_json(kept)))[:8]}" if kept else ""
            return f"propose {who} @{island}{f' from {of}' if of else ''}{mark}"
        case Confirm():
            return f"confirm {of}"
        case Retime(first=first):
            return f"retime {of}{' first' if first else ''}"
        case Finish():
            return f"finish {decision.reason.value}"
