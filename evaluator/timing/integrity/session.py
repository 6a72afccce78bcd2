"""The interface of integrity checks, and the finished timing session that they look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.devices.base import RoundPlan
from evaluator.timing.contender import Contender, Ratios
from evaluator.timing.protocol import TimingProtocol
from evaluator.timing.rounds import Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSession:
    """Contenders that were timed in rounds like `plans`. `log_ratios` are official. `time_again` discards all samples
    and times the pairs anew. Checks of a `patient` session go on for longer until they can tell."""

    rounds: Rounds
    contenders: Sequence[Contender]
    plans: Sequence[RoundPlan]
    log_ratios: Ratios
    protocol: TimingProtocol
    racing: bool
    patient: bool = True
    time_again: Callable[[], None]


class IntegrityCheck(Protocol):
    """Looks for a kernel that is only fast while it is timed."""

    @property
    def name(self) -> str:
        """The name in Adjustments, and of the module."""

    def run(self, session: TimedSession) -> None:
        """Adjust the times of suspects, or raise Rejection. Raise ComparatorFailed for faults of comparators."""
