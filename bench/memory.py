"""Measure how much the lessons of one problem help the next, on recorded landscapes: `python -m bench.memory`.

For every pair of landscapes with references of one family of operations: run our search on the first for --lessons
measurements, distil its lessons, then run our search on the second with these lessons and without. The figure is the
number of device measurements that the second needs until within 1 %, and within 5 %, of the best known kernel. Ratios
are geometric means over pairs and seeds (without over with: above 1, memory helps) with bootstrap intervals (95 %). As
a control the same is done with lessons of every unrelated landscape. QUICK=1: four seeds.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from unittest.mock import patch

from bench.search.compare import FOLDER, compare_needs
from bench.search.landscape import Landscape, load
from bench.search.ours import Ours
from evaluator.screening.family import family_of
from evolution import search
from evolution.lessons import Trial, TunableLesson, distil
from evolution.state import Family
from evolution.tunables import Scalar, key_of
from evolution.tuning import next_configuration

RESULT = Path(__file__).parent / "results" / "memory.json"
Trialled = tuple[Family, dict[str, Scalar]] | None
PROBLEMS = Path(__file__).parents[1] / "examples" / "problems"


def preferred(lessons: Iterable[TunableLesson]) -> dict[str, Scalar]:
    """Return one value for each Tunable: the one with the greatest certain gain over all Workloads."""
    found: dict[str, TunableLesson] = {}
    for one in lessons:
        if not one.workload and (one.tunable not in found or one.low > found[one.tunable].low):
            found[one.tunable] = one
    return {name: ast.literal_eval(one.value) for name, one in sorted(found.items())}


def remembered_trial(
    families: Sequence[Family], values: Mapping[str, Scalar]
) -> tuple[Family, dict[str, Scalar]] | None:
    """Return the Configuration of a family with the values that were best elsewhere, if it was not tried yet.

    All else stays as in the fastest of the family. The fastest family comes first.
    """
    for family in families:
        if not family.seen:
            continue
        start = max(family.seen, key=lambda seen: seen[1])[0]
        fit = {name: value for name, value in values.items() if value in family.tunables.get(name, ())}
        wanted = {**start, **fit}
        if fit and key_of(wanted) not in family.tried:
            return family, wanted
    return None


def lessons_of(land: Landscape, seed: int, measurements: int) -> dict[str, Scalar]:
    """Return the lessons of our search on a landscape after so many measurements."""
    first = Ours(land, seed)
    first.meter.within = -0.5  # never near enough, so the search continues
    first.run(measurements)
    trials = [
        Trial(family=family, language=land.designs[family].language, configuration=c, speedups={"": speedup})
        for family, seen in first.known.seen.items()
        for c, speedup in seen.values()
    ]
    return preferred(distil(trials))


def needed(land: Landscape, seed: int, most: int, within: float, values: Mapping[str, Scalar]) -> int:
    """Return the measurements until within so much of the best known, if the inner search begins with remembered
    values."""

    def first(families: Sequence[Family], rng: Random, *, least: float = -math.inf) -> Trialled:
        return remembered_trial(families, values) or next_configuration(families, rng, least=least)

    second = Ours(land, seed)
    second.meter.within = within
    with patch.object(search, "next_configuration", first):
        return second.run(most) or most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4 if os.environ.get("QUICK") else 20)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--lessons", type=int, default=60)
    parser.add_argument("--landscapes", type=Path, default=FOLDER)
    options = parser.parse_args()
    lands = {path.name.split(".")[0]: load(path) for path in sorted(options.landscapes.glob("*.jsonl.gz"))}
    lands = {name: land for name, land in lands.items() if (PROBLEMS / f"{name}.py").exists()}
    kinds = {name: str(family_of((PROBLEMS / f"{name}.py").read_text())) for name in lands}
    learned = {(n, s): lessons_of(lands[n], s, options.lessons) for n in lands for s in range(options.seeds)}
    table: dict[str, dict[str, object]] = {}
    for within in (0.05, 0.01):
        plain = {(n, s): needed(lands[n], s, options.most, within, {}) for n in lands for s in range(options.seeds)}
        for alike in (True, False):
            pairs = [(a, b) for a in lands for b in lands if a != b and (kinds[a] == kinds[b]) is alike]
            runs = [(a, b, s) for a, b in pairs for s in range(options.seeds)]
            with_memory = {
                (f"{b} after {a}", s): needed(lands[b], s, options.most, within, learned[a, s]) for a, b, s in runs
            }
            without = {(f"{b} after {a}", s): plain[b, s] for a, b, s in runs}
            name = f"within {within:.0%}, {'alike' if alike else 'not alike'}"
            table[name] = {**compare_needs(with_memory, without), "pairs": len(pairs)}
            row = table[name]
            said = f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}] {row['verdict']}"
            print(f"{name:<24} {said} ({len(pairs)} pairs, {options.seeds} seeds)", flush=True)
    hardware = {"machine": platform.machine(), "python": platform.python_version()}
    body = {"hardware": hardware, "seeds": options.seeds, "lessons": options.lessons, "kinds": kinds, "table": table}
    RESULT.write_text(json.dumps(body, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
