"""The table of Proposers: one is a file here and a line in `PROPOSERS`; arms that a Run may name are in
`evolution.arms`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from db.views.work import Call, ProposalResult, ProposeWork, Upcoming
from evolution.types import Arm, Operator, ProposalOutcome
from runtime.settings import Settings
from synthesis import TraceError
from workers.deadline import Deadline
from workers.graphs import shared
from workers.proposers.base import Proposer, Request, none
from workers.proposers.dispatch import DispatchProposer
from workers.proposers.replay import ReplayProposer
from workers.proposers.seed import SeedProposer
from workers.proposers.synthesiser import SynthesiserProposer
from workers.proposers.tune import TuneProposer


@dataclass(frozen=True, slots=True)
class Registered:
    """A Proposer's factory, called once in a worker, and its deadline. `suffixed`: its arms are called NAME:SUFFIX.
    `traces`: it asks for the reference's graphs."""

    make: Callable[[Settings], Proposer]
    deadline_s: Callable[[Settings], float] = lambda settings: settings.proposal_deadline_s
    suffixed: bool = False
    traces: bool = False


def _models(settings: Settings) -> Proposer:
    from workers.proposers.model import checked_models  # noqa: PLC0415  its client takes a second; many ask no model

    return checked_models(settings)


PROPOSERS: Mapping[str, Registered] = {
    "dispatch": Registered(DispatchProposer),
    "model": Registered(_models, traces=True),
    "replay": Registered(ReplayProposer, suffixed=True),
    "seed": Registered(SeedProposer),
    "synthesiser": Registered(SynthesiserProposer, lambda settings: settings.synthesis_deadline_s, traces=True),
    "tune": Registered(TuneProposer),
}


def registered_name(arm: Arm, settings: Settings, table: Mapping[str, Registered] = PROPOSERS) -> str | None:
    """Return the name in the table for an arm, None if this worker has no Proposer for it."""
    if arm.operator is Operator.TUNE:
        return "tune"
    name, colon, _ = arm.proposer.partition(":")
    if name in table and table[name].suffixed == bool(colon) and (name != "model" or settings.models):
        return name
    return "model" if settings.endpoint(arm.proposer) is not None else None


class Proposers:
    """All Proposers of one worker process, each made when it is first asked. Thread-safe."""

    def __init__(self, settings: Settings, table: Mapping[str, Registered] = PROPOSERS) -> None:
        self._settings, self._table = settings, table
        self._made: dict[str, Proposer] = {}
        self._lock = threading.Lock()

    def propose(
        self, work: ProposeWork, *, notes: tuple[str, ...] = (), hold: Callable[[Call], int] | None = None
    ) -> ProposalResult:
        """Ask the Proposer that `work.arm` names, within its deadline. Raises StepFailed."""
        started = time.monotonic()
        name = registered_name(work.arm, self._settings, self._table)
        if name is None:
            known = ", ".join((*self._settings.proposer_names, "seed", "replay:NAME"))
            return none(ProposalOutcome.EXHAUSTED, f"no proposer {work.arm.proposer!r} here; there are: {known}")
        deadline = Deadline(self._table[name].deadline_s(self._settings))
        result = self._proposer(name).propose(Request(work=work, deadline=deadline, notes=notes, hold=hold))
        return replace(result, duration_s=time.monotonic() - started)

    def prepare(self, upcoming: Upcoming) -> bool:
        """Trace a reference for its first Proposals, caged like theirs; return false if there is no need.

        Raises StepFailed.
        """
        arms = (Arm(proposer=name, operator=Operator.CREATE) for name in upcoming.proposers)
        names = (registered_name(arm, self._settings, self._table) for arm in arms)
        needed = any(name is not None and self._table[name].traces for name in names)
        if not needed or shared().is_begun(upcoming.problem, upcoming.device_kind):
            return False
        with suppress(TraceError):  # the Proposals will tell
            shared().of(upcoming.problem, upcoming.device_kind, Deadline(self._settings.synthesis_deadline_s))
        return True

    def _proposer(self, name: str) -> Proposer:
        with self._lock:
            if name not in self._made:
                self._made[name] = self._table[name].make(self._settings)
            return self._made[name]


__all__ = ["PROPOSERS", "Proposers", "Registered", "registered_name"]
