"""The inner search over Tunables: choose the Configuration and the design to judge next, without a model call.

Candidates that differ only in their Configuration are one family. The log of the speedup is modelled over all families
together as a sum of effects: one for the family, one for each (Tunable, value), one for each pair of values of two
Tunables. So a design that was judged once, in a bad Configuration, shows its potential, and good values carry over
between families. The estimate is ridge regression (Hoerl and Kennard 1970); rarely seen effects get a bonus, as in
upper confidence bounds.
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
"""Standard deviation of the part that the effects do not explain."""
FAMILY_SPREAD, VALUE_SPREAD, PAIR_SPREAD = 0.3, 0.15, 0.08
EXPLORATION = 1.0
"""Weight of a prediction's standard deviation in its upper bound."""
FAILURE_LOG = -0.5
"""A failed Configuration counts as slower than the slowest passed one by this log."""
MAX_LISTED = 64

Feature = tuple[str, ...] | tuple[str, str, Scalar] | tuple[str, str, Scalar, str, Scalar]


def next_configuration(
    families: Sequence[Family], rng: Random, *, least: float = -math.inf
) -> tuple[Family, dict[str, Scalar]] | None:
    """Return the untried Configuration with the highest upper bound, and its family.

    Return None if all were tried, or if no upper bound is above the fastest by the log `least`.
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
    """Yield all Configurations of a family; of a large one, the neighbours of its fastest and a random sample."""
    tunables = family.tunables
    if math.prod(len(values) for values in tunables.values()) <= MAX_LISTED:
        yield from (dict(zip(tunables, values, strict=True)) for values in itertools.product(*tunables.values()))
        return
    fastest = max(family.seen, key=lambda seen: seen[1], default=None)
    if fastest is not None:
        yield from neighbours(tunables, fastest[0])
    yield from ({name: rng.choice(values) for name, values in tunables.items()} for _ in range(MAX_LISTED // 2))


class Effects:
    """The effects of families and values on the log of the speedup, fitted to all judged Configurations."""

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
        """Return the upper confidence bound of a Configuration's log speedup."""
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
