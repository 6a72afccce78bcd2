"""Which Proposer an arm means, and the timing of every Proposal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from db.views.work import Call, ProposalResult, ProposeWork
from evolution.arms import DISPATCH
from evolution.types import Operator, ProposalOutcome
from runtime.settings import Settings
from workers.proposers.base import Deadline, Proposer, Request, none
from workers.proposers.dispatch import DispatchProposer
from workers.proposers.model import ModelProposer
from workers.proposers.replay import ReplayProposer
from workers.proposers.seed import SeedProposer
from workers.proposers.synthesiser import SynthesiserProposer
from workers.proposers.tune import TuneProposer

REPLAY = "replay:"


class Proposers:
    """All Proposers of one worker process, by arm. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tune, self._seed, self._dispatch = TuneProposer(), SeedProposer(), DispatchProposer()

    @cached_property
    def _model(self) -> ModelProposer:
        return ModelProposer(self._settings)

    @cached_property
    def _synthesiser(self) -> SynthesiserProposer:
        return SynthesiserProposer()

    def propose(
        self, work: ProposeWork, *, notes: tuple[str, ...] = (), hold: Callable[[Call], int] | None = None
    ) -> ProposalResult:
        """Ask the Proposer that `work.arm` names, within its deadline. Raises StepFailed."""
        started = time.monotonic()
        proposer = self._choose(work)
        if proposer is None:
            known = ", ".join((*self._settings.proposer_names, "seed", "replay:NAME"))
            return none(ProposalOutcome.EXHAUSTED, f"no proposer {work.arm.proposer!r} here; there are: {known}")
        synthesises = proposer is self.__dict__.get("_synthesiser")
        limit_s = self._settings.synthesis_deadline_s if synthesises else self._settings.proposal_deadline_s
        result = proposer.propose(Request(work=work, deadline=Deadline(limit_s), notes=notes, hold=hold))
        return replace(result, duration_s=time.monotonic() - started)

    def _choose(self, work: ProposeWork) -> Proposer | None:
        name = work.arm.proposer
        if work.arm.operator is Operator.TUNE:
            return self._tune
        if name == "seed":
            return self._seed
        if name == DISPATCH:
            return self._dispatch
        if name == "synthesiser":
            return self._synthesiser
        if name.startswith(REPLAY):
            return ReplayProposer(self._settings.replay_dir, name.removeprefix(REPLAY))
        if (name == "model" and self._settings.models) or self._settings.endpoint(name) is not None:
            return self._model
        return None
