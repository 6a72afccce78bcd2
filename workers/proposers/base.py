"""The interface of a Proposer, its request, and its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from db.views.work import Call, ProposalResult, ProposeWork
from evaluator.languages import detect
from evolution.types import ProposalOutcome
from workers.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One Proposal to make. `notes` are refusals of earlier replies, newest first.

    `hold` reserves the cost of a model call, and returns the tokens of reply that it may take, 0 if it may not be made.
    Without it, the rest of the budget that the work names is the limit.
    """

    work: ProposeWork
    deadline: Deadline
    notes: tuple[str, ...] = field(default=())
    hold: Callable[[Call], int] | None = None

    def granted(self, call: Call) -> int:
        """Return the tokens of reply that the Run's budget still pays for."""
        if self.hold is not None:
            return self.hold(call)
        return call.affordable(self.work.tokens_left, self.work.usd_left)


class Proposer(Protocol):
    """Makes one Candidate, or says why there is none. Raises StepFailed only if this machine is at fault."""

    def propose(self, request: Request) -> ProposalResult: ...


def candidate(source: str, *, detail: str = "") -> ProposalResult:
    """Return the result with a source, in the language that is detected in it."""
    return ProposalResult(
        outcome=ProposalOutcome.CANDIDATE, source=source, language=detect(source), detail=one_line(detail)
    )


def none(outcome: ProposalOutcome, detail: str) -> ProposalResult:
    """Return a result without a Candidate."""
    return ProposalResult(outcome=outcome, detail=one_line(detail))


def one_line(text: str, characters: int = 1000) -> str:
    return " ".join(text.split())[:characters]
