"""The inner search over Tunables: which Configuration of which design to judge next. It costs no model call.

Every Candidate that differs from another in its Configuration alone belongs to one family. What a value is worth is
estimated from all families together, as a sum of effects on the log of the speedup: one for the family, one for each
(Tunable, value), one for each pair of values of neighbouring Tunables. So a design that was judged once, badly
configured, is known for what it may become, and good values pass from one relative to the next. The estimate is ridge
regression (Hoerl and Kennard 1970); what was seldom seen gets a bonus (as in upper confidence bounds).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from evolution.state import Family
from evolution.tunables import Configuration, Scalar, key_of, neighbours

SWEEPS = 6
NOISE = 0.03
"""Spread of what the sum of effects does not tell."""
FAMILY_SPREAD, VALUE_SPREAD, PAIR_SPREAD = 0.3, 0.15, 0.08
EXPLORATION = 1.0
"""How many spreads of what is not known count in favour."""
FAILURE_LOG = -0.5
"""A Configuration that did not pass counts as this much (in log) slower than the slowest that did."""
MAX_LISTED = 64

Feature = tuple[str, ...] | tuple[str, str, Scalar] | tuple[str, str, Scalar, str, Scalar]


def next_configuration(
    families: Sequence[Family], rng: Random, *, least: float = -math.inf
) -> tuple[Family, dict[str, Scalar]] | None:
    """The untried Configuration with the best prospects, and its family.

    None where all have been tried, or where even with its bonus none may be `least` (a log) faster than the fastest.
    """
    effects = Effects(families)
    fastest = max((speedup for family in families for _, speedup in family.seen), default=0.0)
    bar = math.log(fastest) + least if fastest > 0 else -math.inf
    best: tuple[float, Family, dict[str, Scalar]] | None = None
    for family in families:
        tried = family.tried
        for configuration in _candidates(family, rng):
            if key_of(configuration) in tried:
                continue
            score = effects.upper_bound(family, configuration) + 1e-4 * rng.random()
            if best is None or score > best[0]:
                best = score, family, configuration
    return None if best is None or best[0] < bar else (best[1], best[2])


def _candidates(family: Family, rng: Random) -> Iterator[dict[str, Scalar]]:
    """All Configurations of a family, or of a large one: what is near its fastest, and some drawn at random."""
    tunables = family.tunables
    if math.prod(len(values) for values in tunables.values()) <= MAX_LISTED:
        yield from (dict(zip(tunables, values, strict=True)) for values in itertools.product(*tunables.values()))
        return
    fastest = max(family.seen, key=lambda seen: seen[1], default=None)
    if fastest is not None:
        yield from neighbours(tunables, fastest[0])
    yield from ({name: rng.choice(values) for name, values in tunables.items()} for _ in range(MAX_LISTED // 2))


class Effects:
    """What families and values are worth, as logs of speedups, from all that was judged."""

    def __init__(self, families: Iterable[Family]) -> None:
        rows = [(list(_features(f.family, c)), speedup) for f in families for c, speedup in f.seen]
        logs = [math.log(speedup) for _, speedup in rows if speedup > 0]
        low = min(logs, default=0.0) + FAILURE_LOG
        self.mean = sum(logs) / len(logs) if logs else 0.0
        self.size: dict[Feature, float] = {}
        self.count = Counter(feature for features, _ in rows for feature, _ in features)
        rest = [(math.log(speedup) if speedup > 0 else low) - self.mean for _, speedup in rows]
        places: dict[Feature, list[int]] = {}
        spreads: dict[Feature, float] = {}
        for index, (features, _) in enumerate(rows):
            for feature, spread in features:
                places.setdefault(feature, []).append(index)
                spreads[feature] = spread
        for _ in range(SWEEPS):
            for feature, indices in places.items():
                old = self.size.get(feature, 0.0)
                total = sum(rest[i] for i in indices) + old * len(indices)
                new = total / (len(indices) + (NOISE / spreads[feature]) ** 2)
                self.size[feature] = new
                for i in indices:
                    rest[i] -= new - old

    def upper_bound(self, family: Family, configuration: Configuration) -> float:
        """What a Configuration may be worth: the sum of its effects, and more where they are not known well."""
        worth, variance = self.mean, 0.0
        for feature, spread in _features(family.family, configuration):
            worth += self.size.get(feature, 0.0)
            variance += spread**2 / (1.0 + self.count[feature] * (spread / NOISE) ** 2)
        return worth + EXPLORATION * math.sqrt(variance)


def _features(family: str, configuration: Configuration) -> Iterator[tuple[Feature, float]]:
    yield ("family", family), FAMILY_SPREAD
    items = sorted(configuration.items())
    for name, value in items:
        yield ("value", name, value), VALUE_SPREAD
    for (a, one), (b, two) in itertools.combinations(items, 2):
        yield ("pair", a, one, b, two), PAIR_SPREAD
