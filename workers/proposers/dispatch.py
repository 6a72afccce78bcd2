"""Several judged kernels in one file, without a model."""

from __future__ import annotations

from db.views.work import ProposalResult
from evolution.types import ProposalOutcome
from runtime.settings import Settings
from synthesis import Unsupported
from workers.proposers.base import Request, candidate, none


class DispatchProposer:
    """Puts the parents into one file, each for the Workloads that `hint["kernels"]` assigns to it."""

    def __init__(self, settings: Settings) -> None:
        del settings

    def propose(self, request: Request) -> ProposalResult:
        from synthesis.dispatch.source import REFERENCE, write_dispatch  # noqa: PLC0415  it imports for a second

        work = request.work
        choices = work.hint.get("kernels")
        if not work.parents or not isinstance(choices, dict):
            return none(ProposalOutcome.MALFORMED, "a dispatch needs parents, and which of them is for which workload")
        try:
            source = write_dispatch(work.problem, work.facts, [parent.source for parent in work.parents], choices)
        except Unsupported as error:
            return none(ProposalOutcome.REFUSED, f"these kernels do not go into one file: {error}")
        names = {REFERENCE: "the reference", **{n: parent.candidate_id for n, parent in enumerate(work.parents)}}
        return candidate(source, detail="; ".join(f"{name}: {names[n]}" for name, n in sorted(choices.items())))
