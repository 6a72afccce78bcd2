"""The synthesiser: traces the reference once per Problem, in a cage, and writes one design per Proposal."""

from __future__ import annotations

from db.views.work import ProposalResult
from evolution.types import ProposalOutcome
from runtime.settings import Settings
from synthesis import Processor, TraceError, Unsupported, propose
from workers.graphs import Graphs, shared
from workers.proposers.base import Request, candidate, none


class SynthesiserProposer:
    """Writes designs from graphs. Any thread may ask."""

    def __init__(self, settings: Settings, graphs: Graphs | None = None) -> None:
        del settings
        self._graphs = graphs or shared()

    def propose(self, request: Request) -> ProposalResult:
        """Return design `arm_number` of this Run, EXHAUSTED if there is none, or none for this reference."""
        work, facts = request.work, request.work.device_facts
        try:
            graphs = self._graphs.of(work.problem, work.device_kind, request.deadline)
            draft = propose(
                graphs,
                work.device_kind,
                number=work.arm_number,
                seed=work.run_seed,
                tried=work.tried,
                processor=Processor.of(int(facts.get("threads", 1)), facts.get("flags", ())),
            )
        except (TraceError, Unsupported) as error:
            return none(ProposalOutcome.EXHAUSTED, f"the synthesiser has nothing for this reference: {error}")
        if draft is None:
            return none(ProposalOutcome.EXHAUSTED, "the synthesiser has written all its designs")
        settings = ", ".join(f"{key}={value}" for key, value in draft.configuration.items())
        detail = f"{draft.strategy}{f' ({settings})' if settings else ''}"
        return candidate(draft.source, detail=f"{detail}; {draft.left}" if draft.left else detail)
