"""Asking the configured endpoints: retries on one, then the next, with a breaker and a limit for each."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import stamina

from runtime.logs import get_logger
from runtime.models import ModelEndpoint
from workers.proposers.base import Deadline
from workers.proposers.breaker import Breaker
from workers.proposers.chat import CallFailed, Message, Reply, call

ATTEMPTS = 3
BACKOFF_S = 0.5
MAX_BACKOFF_S = 8.0

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
class Asking:
    """What one endpoint is sent."""

    messages: list[Message]
    max_output_tokens: int


class AllFailed(Exception):
    """No endpoint gave a reply; the Bill says why."""


class Endpoints:
    """The operator's endpoints, shared by the threads of a worker."""

    def __init__(
        self, endpoints: Sequence[ModelEndpoint], *, max_reply_bytes: int, backoff_s: float = BACKOFF_S
    ) -> None:
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self._breakers = {endpoint.name: Breaker() for endpoint in endpoints}
        self._slots = {e.name: threading.BoundedSemaphore(e.max_concurrency) for e in endpoints}
        self._max_reply_bytes, self._backoff_s = max_reply_bytes, backoff_s

    def order(self, names: Sequence[str], generator: random.Random) -> list[ModelEndpoint]:
        """The endpoints to try: those of `names` in that order, or all of them drawn by weight where it is empty."""
        if names:
            return [self._endpoints[name] for name in names if name in self._endpoints]
        pool, order = list(self._endpoints.values()), []
        while pool:
            chosen = generator.choices(pool, [endpoint.weight for endpoint in pool])[0]
            pool.remove(chosen)
            order.append(chosen)
        return order

    def ask(
        self, order: Sequence[ModelEndpoint], asking: Callable[[ModelEndpoint], Asking], deadline: Deadline, bill: Bill
    ) -> tuple[ModelEndpoint, Reply]:
        """The first whole reply. Every call, lost ones too, is put on the bill. Raises AllFailed."""
        for endpoint in order:
            if deadline.passed:
                break
            breaker = self._breakers[endpoint.name]
            if not breaker.allows():
                bill.failures.append(f"{endpoint.name}: left alone after repeated failures")
                continue
            try:
                reply = self._ask_one(endpoint, asking(endpoint), deadline, bill)
            except CallFailed as failure:
                breaker.failed()
                bill.failures.append(f"{endpoint.name}: {failure}")
                log.warning("endpoint.failed", endpoint=endpoint.name, error=str(failure))
                continue
            breaker.succeeded()
            return endpoint, reply
        raise AllFailed

    def _ask_one(self, endpoint: ModelEndpoint, asking: Asking, deadline: Deadline, bill: Bill) -> Reply:
        """Ask one endpoint up to ATTEMPTS times. Raises the last CallFailed."""

        def backoff(error: Exception) -> bool | float:
            if not isinstance(error, CallFailed) or not error.retry:
                return False
            if error.retry_after_s is None:
                return True
            return error.retry_after_s if error.retry_after_s < deadline.remaining_s else False

        retrying = stamina.retry_context(
            on=backoff,
            attempts=ATTEMPTS,
            timeout=max(0.001, deadline.remaining_s),
            wait_initial=self._backoff_s,
            wait_jitter=self._backoff_s,
            wait_max=MAX_BACKOFF_S,
        )
        for attempt in retrying:
            with attempt:
                return self._ask_once(endpoint, asking, deadline, bill)
        raise AssertionError("unreachable: the last attempt raises")

    def _ask_once(self, endpoint: ModelEndpoint, asking: Asking, deadline: Deadline, bill: Bill) -> Reply:
        slot = self._slots[endpoint.name]
        if not slot.acquire(timeout=deadline.remaining_s):
            raise CallFailed("all its slots are taken", retry=False)
        try:
            reply = call(
                endpoint,
                asking.messages,
                max_output_tokens=asking.max_output_tokens,
                max_reply_bytes=self._max_reply_bytes,
                deadline=deadline.within(endpoint.timeout_s),
            )
        except CallFailed as failure:
            if failure.usage is not None:
                _charge(bill, endpoint, failure.usage.input_tokens, failure.usage.output_tokens, estimated=True)
            bill.partial = failure.text or bill.partial
            raise
        finally:
            slot.release()
        _charge(bill, endpoint, reply.usage.input_tokens, reply.usage.output_tokens, estimated=reply.usage.estimated)
        return reply


def _charge(bill: Bill, endpoint: ModelEndpoint, input_tokens: int, output_tokens: int, *, estimated: bool) -> None:
    bill.input_tokens += input_tokens
    bill.output_tokens += output_tokens
    bill.usd += endpoint.usd(input_tokens, output_tokens)
    bill.estimated = bill.estimated or estimated
