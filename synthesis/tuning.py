"""Rewrite a Candidate's CONFIG, and order the Configurations to try."""

from __future__ import annotations

import ast
import functools
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synthesis.errors import SynthesisError

Value = int | float | str
Configuration = Mapping[str, Value]
MAX_RANDOM = 400


@functools.lru_cache(maxsize=64)
def _literals(source: str) -> dict[str, tuple[str, int, int]]:
    """Return TUNABLES and CONFIG of a source: (text, first line from 0, line after the last)."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("TUNABLES", "CONFIG"):
            place = (ast.unparse(node.value), node.lineno - 1, node.end_lineno or node.lineno)
            found[ast.unparse(node.targets[0])] = place
    return found


def read_tunables(source: str) -> tuple[dict[str, list[Value]], dict[str, Value]]:
    """Return the TUNABLES and CONFIG literals of a source; empty where it has none."""
    found = _literals(source)
    tunables, config = (ast.literal_eval(found[n][0]) if n in found else {} for n in ("TUNABLES", "CONFIG"))
    return tunables, config


def configure(source: str, configuration: Configuration) -> str:
    """Return the source with its CONFIG literal replaced. Raise SynthesisError where it has none."""
    found = _literals(source)
    if "CONFIG" not in found:
        raise SynthesisError("the source has no CONFIG")
    _, first, end = found["CONFIG"]
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:first], f"CONFIG = {dict(configuration)!r}\n", *lines[end:]])


def neighbours(tunables: Mapping[str, Sequence[Value]], configuration: Configuration) -> Iterator[dict[str, Value]]:
    """Yield Configurations that differ in one Tunable: the nearest values of each first, then farther ones."""
    reach = max((len(v) for v in tunables.values()), default=0)
    for distance in range(1, reach):
        for name, values in tunables.items():
            ordered: list[Any] = sorted(values)
            at = ordered.index(configuration[name]) if configuration.get(name) in ordered else 0
            for place in (at + distance, at - distance):
                if 0 <= place < len(ordered):
                    yield {**configuration, name: ordered[place]}


def shuffled_configurations(tunables: Mapping[str, Sequence[Value]], seed: int) -> Iterator[dict[str, Value]]:
    """Yield every Configuration once, in an order drawn from `seed` (of a large space, a sample)."""
    names = list(tunables)
    total = 1
    for values in tunables.values():
        total *= len(values)
    if total <= MAX_RANDOM:
        combinations = list(itertools.product(*tunables.values()))
        random.Random(seed).shuffle(combinations)
        yield from (dict(zip(names, c, strict=True)) for c in combinations)
        return
    rng = random.Random(seed)
    for _ in range(MAX_RANDOM):
        yield {name: rng.choice(list(values)) for name, values in tunables.items()}


def vary(source: str, results: Mapping[str, float], rng: random.Random) -> str | None:
    """Return a Configuration of `source` that is not among `results` (source -> microseconds), near the fastest of
    them.

    `source` is any Configuration of the Candidate. None when its neighbourhood is exhausted.
    """
    best = min(
        (s for s in results if read_tunables(s)[0] == read_tunables(source)[0]), key=results.__getitem__, default=source
    )
    tunables, configuration = read_tunables(best)
    if not tunables:
        return None
    for candidate in neighbours(tunables, configuration):
        text = configure(best, candidate)
        if text not in results and text != source:
            return text
    for candidate in shuffled_configurations(tunables, rng.randrange(1 << 30)):
        text = configure(best, candidate)
        if text not in results and text != source:
            return text
    return None
