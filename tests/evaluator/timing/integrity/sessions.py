"""Finished timing sessions for the tests of single integrity checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from evaluator.devices.base import RoundPlan
from evaluator.timing.contender import Contender
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.protocol import STANDARD

Ratios = Callable[[str, str], Sequence[float]]


def timed_session(rounds: object, contenders: Sequence[Contender], plan: RoundPlan, log_ratios: Ratios) -> TimedSession:
    """A session of equal rounds with a stand-in for Rounds."""

    def time_again() -> None:
        raise AssertionError("nothing is timed again here")

    return TimedSession(
        rounds=cast("Any", rounds), contenders=contenders, plans=[plan], log_ratios=log_ratios, racing=False,
        protocol=STANDARD, time_again=time_again,
    )  # fmt: skip
