"""A source that the user gave as a seed."""

from __future__ import annotations

from db.views.work import ProposalResult
from evolution.types import ProposalOutcome
from prompts import ReplyError
from prompts.reply import checked
from runtime.settings import Settings
from workers.proposers.base import Request, candidate, none


class SeedProposer:
    """Takes `work.given` as it is."""

    def __init__(self, settings: Settings) -> None:
        del settings

    def propose(self, request: Request) -> ProposalResult:
        given = request.work.given
        if given is None:
            return none(ProposalOutcome.EXHAUSTED, "no seed was given")
        try:
            return candidate(checked(given), detail="given as a seed")
        except ReplyError as error:
            return none(ProposalOutcome.MALFORMED, str(error))
