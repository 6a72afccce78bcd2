"""Another Configuration of a parent, without a model."""

from __future__ import annotations

from db.views.work import ProposalResult
from evolution.tunables import TunablesError, apply_configuration
from evolution.types import ProposalOutcome
from runtime.settings import Settings
from workers.proposers.base import Request, candidate, none


class TuneProposer:
    """Writes `hint["configuration"]` into the first parent's CONFIG."""

    def __init__(self, settings: Settings) -> None:
        del settings

    def propose(self, request: Request) -> ProposalResult:
        work = request.work
        configuration = work.hint.get("configuration")
        if not work.parents or not isinstance(configuration, dict):
            return none(ProposalOutcome.MALFORMED, "tuning needs a parent and a configuration")
        try:
            source = apply_configuration(work.parents[0].source, configuration)
        except TunablesError as error:
            return none(ProposalOutcome.MALFORMED, str(error))
        return candidate(source, detail=", ".join(f"{key}={value}" for key, value in configuration.items()))
