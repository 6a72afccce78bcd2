"""Asking the configured endpoints: the first that is ready, with rate limits, pauses and a breaker for each."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evolution.types import Fault
from runtime.logs import get_logger
from runtime.models import ModelEndpoint
from workers.deadline import Deadline
from workers.models.breaker import OPEN_S, Breaker
from workers.models.chat import CallFailed, Message, Reply, call
from workers.models.faults import Stopped, Trials
from workers.models.pace import Pace

ATTEMPTS = 3
BACKOFF_S = 0.5
MAX_BACKOFF_S = 8.0
SLOT_WAIT_S = 0.25

log = get_logger(__name__)


@dataclass(slots=True)
class Bill:
    """The cost of all calls of one Proposal, failed ones included, and their failures."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    estimated: bool = False
    failures: list[str] = field(default_factory=list)
    partial: str = ""

    @property
    def said(self) -> str:
        """Return the failures in words, equal ones once with their number."""
        return "; ".join(f"{one} ({n} times)" if n > 1 else one for one, n in Counter(self.failures).items())


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The messages for one endpoint, and the tokens of reply that it may take."""

    messages: list[Message]
    max_output_tokens: int
    temperature: float | None = None


class AllFailed(Exception):
    """No endpoint gave a reply; the Bill says why."""


class OutOfBudget(Exception):
    """The rest of the Run's budget does not pay for another reply, of this endpoint at least."""


class _State:
    """The state of one endpoint, shared by the threads of a worker."""

    def __init__(self, endpoint: ModelEndpoint, *, open_s: float) -> None:
        self.endpoint = endpoint
        self.breaker = Breaker(open_s=open_s)
        self.pace = Pace(endpoint.requests_per_minute, endpoint.tokens_per_minute)
        self.trials = Trials()
        self.slots = threading.BoundedSemaphore(endpoint.max_concurrency)

    def wait_s(self) -> float:
        return max(self.breaker.wait_s(), self.pace.wait_s())


@dataclass(slots=True)
class _Attempts:
    """The calls of one Proposal to one endpoint: their number, and when the next may be made."""

    state: _State
    calls: int = 0
    ready_at: float = 0.0

    def wait_s(self) -> float:
        return max(self.ready_at - time.monotonic(), self.state.wait_s())


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
        self._states = {endpoint.name: _State(endpoint, open_s=open_s) for endpoint in endpoints}
        self._max_reply_bytes, self._backoff_s = max_reply_bytes, backoff_s

    def order(self, names: Sequence[str], generator: random.Random, run_id: str = "") -> list[ModelEndpoint]:
        """Return the endpoints to try: those of `names` in that order, or without names all, drawn by weight.

        Without names, those whose answers were of no use to the Run are left out while others are left.
        """
        if names:
            return [self._states[name].endpoint for name in names if name in self._states]
        useful = [state.endpoint for state in self._states.values() if not state.trials.stopped(run_id)]
        pool, order = useful or [state.endpoint for state in self._states.values()], []
        while pool:
            chosen = generator.choices(pool, [endpoint.weight for endpoint in pool])[0]
            pool.remove(chosen)
            order.append(chosen)
        return order

    def tried(self, name: str, run_id: str, fault: Fault | None, words: str = "") -> None:
        """Count an answer of no use to a Run, or with None a useful one."""
        self._states[name].trials.note(run_id, fault, words)

    def ask(
        self,
        order: Sequence[ModelEndpoint],
        prepared: Callable[[ModelEndpoint], ModelCall],
        deadline: Deadline,
        bill: Bill,
        run_id: str = "",
    ) -> tuple[ModelEndpoint, Reply]:
        """Return the first whole reply. The first of `order` that is ready is asked; while it pauses, the next.

        One that the budget does not pay for gives way to the others: they may be cheaper. Every call is put on the
        bill, failed ones too. No wait goes beyond the deadline. Raises AllFailed; for the last endpoint that is left
        OutOfBudget, or Stopped where its answers to this Run were of no use.
        """
        all_attempts = [_Attempts(self._states[endpoint.name]) for endpoint in order]
        while all_attempts and not deadline.passed:
            attempts = min(all_attempts, key=lambda item: item.wait_s())
            wait_s = attempts.wait_s()
            if wait_s >= deadline.remaining_s:
                all_attempts.remove(attempts)
                bill.failures.append(_resting(attempts, wait_s))
            elif wait_s > 0.0:
                time.sleep(wait_s)
            elif self._may_begin(attempts, all_attempts, run_id):
                try:
                    reply = self._in_slot(attempts, prepared, deadline, bill)
                except OutOfBudget:
                    if len(all_attempts) == 1:
                        raise
                    all_attempts.remove(attempts)
                    continue
                finally:
                    attempts.state.trials.end(run_id)
                if reply is not None:
                    return attempts.state.endpoint, reply
                if attempts.calls >= ATTEMPTS:
                    all_attempts.remove(attempts)
        raise AllFailed

    @staticmethod
    def _may_begin(attempts: _Attempts, others: list[_Attempts], run_id: str) -> bool:
        """Begin a call, or return False; an endpoint that is not asked again gives way to the others."""
        try:
            begun = attempts.state.trials.begin(run_id)
        except Stopped:
            if len(others) == 1:
                raise
            others.remove(attempts)
            return False
        if not begun:
            attempts.ready_at = time.monotonic() + SLOT_WAIT_S
        return begun

    def _in_slot(
        self, attempts: _Attempts, prepared: Callable[[ModelEndpoint], ModelCall], deadline: Deadline, bill: Bill
    ) -> Reply | None:
        """Make one call if one of the endpoint's slots is free, or becomes so in a moment."""
        if not attempts.state.slots.acquire(timeout=min(SLOT_WAIT_S, deadline.remaining_s)):
            return None
        try:
            return self._call(attempts, prepared, deadline, bill)
        finally:
            attempts.state.slots.release()

    def _call(
        self, attempts: _Attempts, prepared: Callable[[ModelEndpoint], ModelCall], deadline: Deadline, bill: Bill
    ) -> Reply | None:
        """Make one call. Return None if it gave no whole reply, with the consequences noted."""
        state = attempts.state
        if state.pace.wait_s() > 0.0 or not state.breaker.allows():
            return None  # another thread was quicker
        state.pace.begin()
        asked = prepared(state.endpoint)
        try:
            reply = call(
                state.endpoint,
                asked.messages,
                max_output_tokens=asked.max_output_tokens,
                max_reply_bytes=self._max_reply_bytes,
                deadline=deadline.within(state.endpoint.timeout_s),
                temperature=asked.temperature,
            )
        except CallFailed as failure:
            self._failed(attempts, failure, bill)
            return None
        state.breaker.succeeded()
        _charge(bill, state, reply.usage.input_tokens, reply.usage.output_tokens, estimated=reply.usage.estimated)
        return reply

    def _failed(self, attempts: _Attempts, failure: CallFailed, bill: Bill) -> None:
        state, name = attempts.state, attempts.state.endpoint.name
        log.warning("endpoint.failed", endpoint=name, error=str(failure))
        bill.failures.append(f"{name}: {failure}")
        bill.partial = failure.text or bill.partial
        if failure.usage is not None:
            _charge(bill, state, failure.usage.input_tokens, failure.usage.output_tokens, estimated=True)
        backoff_s = min(MAX_BACKOFF_S, self._backoff_s * 2**attempts.calls * (1.0 + random.random()))
        if failure.busy:
            state.pace.rest(backoff_s if failure.retry_after_s is None else failure.retry_after_s)
        elif failure.outage:
            state.breaker.failed()
        attempts.calls = attempts.calls + 1 if failure.retry else ATTEMPTS
        attempts.ready_at = time.monotonic() + (failure.retry_after_s or backoff_s)


def _resting(attempts: _Attempts, wait_s: float) -> str:
    why = "left alone after repeated failures" if attempts.state.breaker.wait_s() else "it asked to be left alone"
    return f"{attempts.state.endpoint.name}: {why}, for {wait_s:.1f} s more"


def _charge(bill: Bill, state: _State, input_tokens: int, output_tokens: int, *, estimated: bool) -> None:
    bill.input_tokens += input_tokens
    bill.output_tokens += output_tokens
    bill.usd += state.endpoint.usd(input_tokens, output_tokens)
    bill.estimated = bill.estimated or estimated
    state.pace.used(input_tokens + output_tokens)
