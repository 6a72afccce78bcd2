"""ModelCall the configured endpoints: whichever is ready first, with limits, rests and a breaker for each."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runtime.logs import get_logger
from runtime.models import ModelEndpoint
from workers.deadline import Deadline
from workers.models.breaker import OPEN_S, Breaker
from workers.models.chat import CallFailed, Message, Reply, call
from workers.models.pace import Pace

ATTEMPTS = 3
BACKOFF_S = 0.5
MAX_BACKOFF_S = 8.0
SLOT_WAIT_S = 0.25

log = get_logger(__name__)


@dataclass(slots=True)
class Bill:
    """What one Proposal's calls have cost in all, failed ones included, and what went wrong on the way."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    estimated: bool = False
    failures: list[str] = field(default_factory=list)
    partial: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What one endpoint is sent."""

    messages: list[Message]
    max_output_tokens: int


class AllFailed(Exception):
    """No endpoint gave a reply; the Bill says why."""


class _Lane:
    """One endpoint, as the threads of a worker share it."""

    def __init__(self, endpoint: ModelEndpoint, *, open_s: float) -> None:
        self.endpoint = endpoint
        self.breaker = Breaker(open_s=open_s)
        self.pace = Pace(endpoint.requests_per_minute, endpoint.tokens_per_minute)
        self.slots = threading.BoundedSemaphore(endpoint.max_concurrency)

    def wait_s(self) -> float:
        return max(self.breaker.wait_s(), self.pace.wait_s())


@dataclass(slots=True)
class _Turn:
    """One endpoint in one asking: calls made, and when the next may be."""

    lane: _Lane
    calls: int = 0
    ready_at: float = 0.0

    def wait_s(self) -> float:
        return max(self.ready_at - time.monotonic(), self.lane.wait_s())


class Endpoints:
    """The operator's endpoints, shared by the threads of a worker."""

    def __init__(
        self,
        endpoints: Sequence[ModelEndpoint],
        *,
        max_reply_bytes: int,
        backoff_s: float = BACKOFF_S,
        open_s: float = OPEN_S,
    ) -> None:
        self._lanes = {endpoint.name: _Lane(endpoint, open_s=open_s) for endpoint in endpoints}
        self._max_reply_bytes, self._backoff_s = max_reply_bytes, backoff_s

    def order(self, names: Sequence[str], generator: random.Random) -> list[ModelEndpoint]:
        """The endpoints to try: those of `names` in that order, or all of them drawn by weight where it is empty."""
        if names:
            return [self._lanes[name].endpoint for name in names if name in self._lanes]
        pool, order = [lane.endpoint for lane in self._lanes.values()], []
        while pool:
            chosen = generator.choices(pool, [endpoint.weight for endpoint in pool])[0]
            pool.remove(chosen)
            order.append(chosen)
        return order

    def ask(
        self,
        order: Sequence[ModelEndpoint],
        prepared: Callable[[ModelEndpoint], ModelCall],
        deadline: Deadline,
        bill: Bill,
    ) -> tuple[ModelEndpoint, Reply]:
        """Return the first whole reply. The first of `order` that is ready is asked, and the next while it rests.

        Every call is put on the bill, failed ones too. No wait goes beyond the deadline. Raises AllFailed.
        """
        turns = [_Turn(self._lanes[endpoint.name]) for endpoint in order]
        while turns and not deadline.passed:
            turn = min(turns, key=lambda item: item.wait_s())
            wait_s = turn.wait_s()
            if wait_s >= deadline.remaining_s:
                turns.remove(turn)
                bill.failures.append(_resting(turn, wait_s))
            elif wait_s > 0.0:
                time.sleep(wait_s)
            elif turn.lane.slots.acquire(timeout=min(SLOT_WAIT_S, deadline.remaining_s)):
                try:
                    reply = self._call(turn, prepared, deadline, bill)
                finally:
                    turn.lane.slots.release()
                if reply is not None:
                    return turn.lane.endpoint, reply
                if turn.calls >= ATTEMPTS:
                    turns.remove(turn)
        raise AllFailed

    def _call(
        self, turn: _Turn, prepared: Callable[[ModelEndpoint], ModelCall], deadline: Deadline, bill: Bill
    ) -> Reply | None:
        """One call; None where it gave no whole reply, with what follows from that noted."""
        lane = turn.lane
        if lane.pace.wait_s() > 0.0 or not lane.breaker.allows():
            return None  # another thread was quicker
        lane.pace.begin()
        asked = prepared(lane.endpoint)
        try:
            reply = call(
                lane.endpoint,
                asked.messages,
                max_output_tokens=asked.max_output_tokens,
                max_reply_bytes=self._max_reply_bytes,
                deadline=deadline.within(lane.endpoint.timeout_s),
            )
        except CallFailed as failure:
            self._failed(turn, failure, bill)
            return None
        lane.breaker.succeeded()
        _charge(bill, lane, reply.usage.input_tokens, reply.usage.output_tokens, estimated=reply.usage.estimated)
        return reply

    def _failed(self, turn: _Turn, failure: CallFailed, bill: Bill) -> None:
        lane, name = turn.lane, turn.lane.endpoint.name
        log.warning("endpoint.failed", endpoint=name, error=str(failure))
        bill.failures.append(f"{name}: {failure}")
        bill.partial = failure.text or bill.partial
        if failure.usage is not None:
            _charge(bill, lane, failure.usage.input_tokens, failure.usage.output_tokens, estimated=True)
        backoff_s = min(MAX_BACKOFF_S, self._backoff_s * 2**turn.calls * (1.0 + random.random()))
        if failure.busy:
            lane.pace.rest(backoff_s if failure.retry_after_s is None else failure.retry_after_s)
        elif failure.outage:
            lane.breaker.failed()
        turn.calls = turn.calls + 1 if failure.retry else ATTEMPTS
        turn.ready_at = time.monotonic() + (failure.retry_after_s or backoff_s)


def _resting(turn: _Turn, wait_s: float) -> str:
    why = "left alone after repeated failures" if turn.lane.breaker.wait_s() else "it asked to be left alone"
    return f"{turn.lane.endpoint.name}: {why}, for {wait_s:.1f} s more"


def _charge(bill: Bill, lane: _Lane, input_tokens: int, output_tokens: int, *, estimated: bool) -> None:
    bill.input_tokens += input_tokens
    bill.output_tokens += output_tokens
    bill.usd += lane.endpoint.usd(input_tokens, output_tokens)
    bill.estimated = bill.estimated or estimated
    lane.pace.used(input_tokens + output_tokens)
