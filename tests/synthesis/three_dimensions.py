"""What tests of C++ over three dimensions share: sizes, problems, drafts."""

from __future__ import annotations

import functools
import itertools
import sys

from evaluator.types import DeviceKind
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import graphs, problem

X = "torch.randn(b, c, h) * 3"
SIZES = "b=3, c=37, h=20"
TWO = [{"name": "a", "b": 3, "c": 37, "h": 20}, {"name": "b", "b": 2, "c": 70, "h": 133}]
CHECKED = [
    *TWO,
    {"name": "one row", "b": 1, "c": 41, "h": 1},
    {"name": "one element", "b": 5, "c": 1, "h": 19},
    {"name": "long", "b": 1, "c": 1500, "h": 3},
    {"name": "wide", "b": 2, "c": 3, "h": 1100},
    {"name": "no rows", "b": 0, "c": 4, "h": 5},
]


def one(formula: str) -> str:
    return problem(f"x = a0\nreturn {formula}", X, sizes=SIZES)


def two(formula: str, first: str, second: str) -> str:
    return problem(f"x, y = a0, a1\nreturn {formula}", f"{first}, {second}", sizes=SIZES)


@functools.cache
def drafts_of(source: str, count: int = 1, threads: int = 1, *, wide: bool = False) -> list[Draft]:
    """Return the first drafts: there are hundreds."""
    processor = Processor(threads, wide=wide)
    return list(itertools.islice(sequence(graphs(source, TWO), DeviceKind.CPU, 0, processor), count))


@functools.cache
def every_value(source: str) -> list[Draft]:
    """Return drafts in which every value of every tunable occurs."""
    chosen: dict[tuple[str, object], Draft] = {}
    for draft in drafts_of(source, sys.maxsize, wide=True):
        for item in draft.configuration.items():
            chosen.setdefault(item, draft)
    return list({d.source: d for d in chosen.values()}.values())
