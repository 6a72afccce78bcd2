"""Find contenders that look fast and could reach the harness."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.devices.base import SingleCallBackend
from evaluator.timing import stats
from evaluator.timing.contender import Contender, fastest_comparator
from evaluator.timing.integrity.session import TimedSession


def able_to_reach_harness(session: TimedSession) -> Iterator[Contender]:
    """Yield the suspects that could reach the harness, on a device that can run single calls."""
    if fastest_comparator(session.contenders) is None or not isinstance(session.rounds.backend, SingleCallBackend):
        return
    yield from (contender for contender in session.contenders if contender.suspect and not contender.plain)


def harness_suspects(session: TimedSession) -> dict[str, float]:
    """Return those that seem faster than the fastest comparator, by name, each with the share of that one's time that
    it saves in rounds."""
    fastest = fastest_comparator(session.contenders)
    found: dict[str, float] = {}
    for contender in able_to_reach_harness(session):
        assert fastest is not None
        ratio, _ = stats.ratio_interval(session.log_ratios(fastest.name, contender.name))
        if 1 - 1 / ratio > session.protocol.integrity.single_calls:
            found[contender.name] = 1 - 1 / ratio
    return found
