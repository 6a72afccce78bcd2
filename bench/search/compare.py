"""Count measurements until within 5 % of the best known kernel, ours and others: `python -m bench.search.compare`.

Every device measurement counts, also the tuner's and confirmations (four each). A kernel that does not build never uses
the device and does not count. A search that does not get there within --most counts as that many. A ratio is the
geometric mean over landscapes and seeds of the other's need over ours, with a bootstrap interval (95 %). With the tuner
on, every search has ours. QUICK=1: four seeds, and nothing is recorded. Losses are printed like the rest. Each ratio is
also given for parts alone: the deep landscapes, with the best kernels behind several edits, the shallow ones, and those
that were recorded after the search was developed (HELD_OUT), once there are any.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.search.landscape import Landscape, load
from bench.search.ours import Ours
from bench.search.peers import searches

FOLDER = Path(__file__).with_name("landscapes")
RESULT = Path(__file__).parents[1] / "results" / "search.json"
HELD_OUT = (
    "deep.softmax_scale_mask-prefill", "deep.decode_attention-b1-8k", "deep.layernorm-gpt-8k",
    "deep.softmax_scale_mask-encoder",
)  # fmt: skip
ABLATIONS = ("bandit", "novelty", "tuning")
MODULES = {"openevolve": "openevolve", "shinka-evolve": "shinka"}
PARTS = ("held out", "deep", "shallow")
Needed = dict[tuple[str, int], int]
Amounts = Mapping[tuple[str, int], float]


@dataclass(frozen=True)
class Job:
    """One search (ours if `search` is empty), once on every landscape. `off` names a mechanism to leave out."""

    paths: tuple[Path, ...]
    most: int
    seed: int
    search: str = ""
    off: str = ""
    noise: float = 0.0

    def __call__(self) -> Needed:
        found: Needed = {}
        for path in self.paths:
            land = load_landscape(path, self.noise)
            if self.search:
                count = searches()[self.search](land, self.seed, self.most, self.off != "tuning")
            else:
                count = Ours(land, self.seed, self.off).run(self.most)
            found[land.name, self.seed] = count or self.most
        return found


@cache
def load_landscape(path: Path, noise: float = 0.0) -> Landscape:
    """Return a landscape, read once by each process."""
    return load(path, noise)


def _run(job: Job) -> Needed:
    return job()


def interval(logs: list[float]) -> tuple[float, float]:
    """Return a bootstrap interval (95 %) of the geometric mean."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(logs, k=len(logs))) for _ in range(2000))
    return math.exp(means[50]), math.exp(means[1949])


def compare_needs(mine: Needed, other: Needed) -> dict[str, object]:
    """Return how many times the measurements the other needs, and its own need."""
    return {**ratios(mine, other), **needed(other)}


def ratios(mine: Amounts, other: Amounts) -> dict[str, object]:
    """Return how many times as much the other needs (above 1: ours is ahead): for all, and for each part alone."""
    parts = {part: [key for key in mine if part in _parts(_problem(key))] for part in PARTS}
    return {
        **_ratio(mine, other, list(mine)),
        **{name: _ratio(mine, other, keys) for name, keys in parts.items() if keys},
    }


def _problem(key: tuple[str, int]) -> str:
    return key[0].split(" ")[0]


def _parts(problem: str) -> set[str]:
    """Return the parts that a landscape belongs to."""
    depth = "deep" if problem.startswith("deep.") else "shallow"
    return {depth, "held out"} if problem in HELD_OUT else {depth}


def _ratio(mine: Amounts, other: Amounts, keys: list[tuple[str, int]]) -> dict[str, object]:
    logs = [math.log(other[key] / mine[key]) for key in keys]
    low, high = interval(logs)
    verdict = "ahead" if low > 1 else "behind" if high < 1 else "no difference"
    return {
        "ratio": round(math.exp(statistics.fmean(logs)), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "verdict": verdict,
    }


def shown(row: dict[str, Any]) -> str:
    """Return a row's ratios in one line: all, then the parts."""
    parts = [("", row), *((f"{name} ", row[name]) for name in PARTS if name in row)]
    return "   ".join(
        f"{name}{part['ratio']:.2f} [{part['low']:.2f}, {part['high']:.2f}] {part['verdict']}"
        for name, part in parts
        if "ratio" in part
    )


def needed(found: Needed) -> dict[str, object]:
    """Return the need of a search: the median, the geometric mean, and each landscape's."""
    logs: dict[str, list[float]] = {}
    for (land, _), count in found.items():
        logs.setdefault(land.split(" ")[0], []).append(math.log(count))
    every = [log for values in logs.values() for log in values]
    return {
        "median_needed": statistics.median(found.values()),
        "mean_needed": round(math.exp(statistics.fmean(every)), 1),
        "by_landscape": {land: round(math.exp(statistics.fmean(values)), 1) for land, values in logs.items()},
    }


def _table(every: Callable[[str, str], Needed]) -> dict[str, dict[str, Any]]:
    """Return the need of every search over ours, with and without the tuner."""
    table: dict[str, dict[str, Any]] = {}
    for tuner, off in (("on", ""), ("off", "tuning")):
        mine = every("", off)
        for name in searches():
            table[f"{name}, tuner {tuner}"] = row = compare_needs(mine, every(name, off))
            print(f"{name}, tuner {tuner}: {shown(row)}", file=sys.stderr, flush=True)
        table[f"ours, tuner {tuner}"] = needed(mine)
    return table


def _ablations(every: Callable[[str, str], Needed]) -> dict[str, dict[str, Any]]:
    """Return the need of ours without each mechanism, over that of the whole."""
    whole = every("", "")
    return {f"ours without {off}": compare_needs(whole, every("", off)) for off in ABLATIONS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4 if os.environ.get("QUICK") else 20)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--noise", type=float, default=0.0, help="least spread of a measurement's log; ablations alone")
    parser.add_argument("--landscapes", type=Path, default=FOLDER)
    parser.add_argument("--only", default="*", metavar="NAMES", help="only landscapes with these names, as in 'deep.*'")
    parser.add_argument("--output", type=Path, default=None, help="the file of the record")
    options = parser.parse_args()
    paths = tuple(sorted(options.landscapes.glob(f"{options.only}.jsonl.gz")))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:

        def every(search: str = "", off: str = "") -> Needed:
            jobs = [Job(paths, options.most, seed, search, off, options.noise) for seed in range(options.seeds)]
            return {key: count for found in pool.map(_run, jobs) for key, count in found.items()}

        table = {**({} if options.noise else _table(every)), **_ablations(every)}
    lands = [load(path) for path in paths]
    for name, row in table.items():
        print(f"{name:<34} mean {row['mean_needed']:>6}   {shown(row)}")
    sizes = {land.name: {"kernels": len(land.kernels), "best": land.best} for land in lands}
    hardware = {"machine": platform.machine(), "python": platform.python_version()}
    peers = {name: version(name) for name in ("openevolve", "shinka-evolve") if find_spec(MODULES[name]) is not None}
    body = {
        "hardware": hardware,
        "peers": peers,
        "seeds": options.seeds,
        "most": options.most,
        "least_spread": options.noise,
        "landscapes": sizes,
        "table": table,
    }
    if options.output or not os.environ.get("QUICK"):
        path = options.output or (RESULT.with_stem("search-noisy") if options.noise else RESULT)
        path.write_text(json.dumps(body, indent=1) + "\n")
    print(f"{len(lands)} landscapes, {options.seeds} seeds, {sum(s['kernels'] for s in sizes.values())} kernels")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
