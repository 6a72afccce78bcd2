"""Plan the amounts and their distribution: sizes of Runs and Projects fall off as 1/rank (Zipf)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The number of rows of a database. The largest Run belongs to the largest Project, which is `default`."""

    candidates: int
    runs: int
    problems: int
    projects: int
    largest_run: int
    largest_project: int


SCALES = {
    "full": Scale(
        candidates=1_000_000, runs=20_000, problems=2_000, projects=50, largest_run=100_000, largest_project=300_000
    ),
    "sqlite": Scale(
        candidates=100_000, runs=2_000, problems=200, projects=10, largest_run=10_000, largest_project=30_000
    ),
    "quick": Scale(candidates=5_000, runs=200, problems=40, projects=5, largest_run=1_000, largest_project=2_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One Run to be made. Project 0 is `default`; Runs are listed in the order of time."""

    number: int
    project: int
    problem: int
    size: int


def zipf(largest: int, count: int, total: int) -> list[int]:
    """Return `count` sizes that fall off as a power of their rank from `largest`, and add up to `total`."""
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        wanted = sum(max(1, round(largest / rank**middle)) for rank in range(1, count + 1)) > total
        low, high = (middle, high) if wanted else (low, middle)
    sizes = [max(1, round(largest / rank**high)) for rank in range(1, count + 1)]
    missing = total - sum(sizes)
    for rank in range(missing):
        sizes[1 + rank % (count - 1)] += 1
    return sizes


def plan(scale: Scale, rng: random.Random) -> list[RunPlan]:
    """Return every Run, in the order of time; the largest lies in the middle of it."""
    sizes = zipf(scale.largest_run, scale.runs, scale.candidates)
    projects = _projects(scale, sizes, rng)
    problems = _problems(scale)
    runs = [
        RunPlan(number=0, project=project, problem=_pick(problems[project], rng), size=size)
        for size, project in zip(sizes, projects, strict=True)
    ]
    largest, rest = runs[0], runs[1:]
    rng.shuffle(rest)
    ordered = [*rest[: len(rest) // 2], largest, *rest[len(rest) // 2 :]]
    return [
        RunPlan(number=number, project=run.project, problem=run.problem, size=run.size)
        for number, run in enumerate(ordered)
    ]


def _projects(scale: Scale, sizes: Sequence[int], rng: random.Random) -> list[int]:
    """Return the Project of each Run: `default` is filled up to its size, the others share the rest by their rank."""
    found = [0] * len(sizes)
    left = scale.largest_project - sizes[0]
    others = range(1, scale.projects)
    weights = [1 / rank for rank in others]
    order = list(range(1, len(sizes)))
    rng.shuffle(order)
    for index in order:
        if sizes[index] <= left:
            left -= sizes[index]
        else:
            found[index] = rng.choices(others, weights)[0]
    return found


def _problems(scale: Scale) -> list[range]:
    """Return the numbers of each Project's Problems: three in ten are `default`'s."""
    own = scale.problems * 3 // 10
    weights = [1 / rank for rank in range(1, scale.projects)]
    ranges, begin = [range(own)], own
    for number, weight in enumerate(weights):
        last = number == len(weights) - 1
        end = scale.problems if last else begin + max(1, int((scale.problems - own) * weight / sum(weights)))
        end = min(end, scale.problems - (len(weights) - 1 - number))
        ranges.append(range(begin, end))
        begin = end
    return ranges


def _pick(problems: range, rng: random.Random) -> int:
    """Return a Problem of a Project: the first ones have the most Runs."""
    return problems[min(len(problems) - 1, int(len(problems) * rng.random() ** 3))]
