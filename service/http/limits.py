"""Token buckets in memory that limit requests by key and by address, and guesses of keys."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from db.tokens import prefix_of
from service.errors import TooManyRequests

REMEMBERED = 20_000
GUESSES = 10
"""Wrong keys allowed from one address at once; afterwards the rate of the settings."""


class TokenBuckets:
    """One bucket a name, of `burst` tokens that refill at `per_s`. The least recent names are forgotten.

    A forgotten bucket is a full one, so a flood of names costs memory of a fixed size and nothing else.
    """

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> None:
        """Take a token. Raise TooManyRequests with the time of the next one where there is none."""
        wait_s = self.try_take(name)
        if wait_s > 0:
            raise too_many(wait_s)

    def check(self, name: str) -> None:
        """Raise TooManyRequests where there is no token, and take none."""
        wait_s = self.try_take(name, taken=0.0)
        if wait_s > 0:
            raise too_many(wait_s)

    def try_take(self, name: str, *, taken: float = 1.0) -> float:
        """Take `taken` of a token where there is one, and return 0; else return the seconds to wait.

        A rate of 0 limits nothing.
        """
        if self._per_s <= 0:
            return 0.0
        with self._lock:
            moment = self._clock()
            tokens, then = self._buckets.pop(name, (self._burst, moment))
            tokens = min(self._burst, tokens + (moment - then) * self._per_s)
            enough = tokens >= 1.0
            self._buckets[name] = (tokens - taken if enough else tokens, moment)
            if len(self._buckets) > REMEMBERED:
                self._buckets.popitem(last=False)
        return 0.0 if enough else (1.0 - tokens) / self._per_s

    def forget(self) -> None:
        """Fill every bucket."""
        with self._lock:
            self._buckets.clear()

    def __len__(self) -> int:
        return len(self._buckets)


def too_many(wait_s: float) -> TooManyRequests:
    """Return the refusal, with Retry-After in whole seconds."""
    seconds = max(1, math.ceil(wait_s))
    return TooManyRequests(f"Too many requests: try again in {seconds} s.", headers={"Retry-After": str(seconds)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The rates: per address, per key, and wrong guesses per address."""

    addresses: TokenBuckets
    keys: TokenBuckets
    guesses: TokenBuckets


def check_guesses(limits: Limits, block: str, key: str) -> None:
    """Refuse a possible guess from an address with too many wrong ones.

    Keys of our own format have 256 random bits and are always checked; a key that a person chose can be guessed.
    """
    if prefix_of(key) is None:
        limits.guesses.check(block)


def count_guess(limits: Limits, block: str, key: str) -> None:
    """Count a wrong key, if it may have been a guess."""
    if prefix_of(key) is None:
        limits.guesses.try_take(block)
