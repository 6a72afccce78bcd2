"""Count measurements until within 5 % of the best known kernel, ours and others: `python -m bench.search.compare`.

A second table compares what searches reach after 50 and 100 proposals (`bench.search.course`).

Every device measurement counts, also the tuner's and confirmations (four each). A kernel that does not build never uses
the device and does not count. A search that does not get there within --most counts as that many. A ratio is the
geometric mean over landscapes and seeds of the other's need over ours, with a bootstrap interval (95 %). With the tuner
on, every search has ours. QUICK=1: four seeds, and nothing is recorded. Losses are printed like the rest. Each ratio is
also given for parts alone: the deep landscapes, with the best kernels behind several edits, the shallow ones, and those
that no change of the search is tried on (all but TRIED_ON).
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

from bench.search.course import MOMENTS, Course, Courses, compare_at, course_of, read_courses, written_courses
from bench.search.landscape import Landscape, load
from bench.search.ours import Ours
from bench.search.peers import PACKAGES, searches

FOLDER = Path(__file__).with_name("landscapes")
RESULT = Path(__file__).parents[1] / "results" / "search.json"
TRIED_ON = (
    "bias_gelu", "decode_attention-b16-2k", "deep.cross_entropy-llama3-1k", "deep.int8_linear-decode",
    "gated_linear-prefill", "layernorm", "linear_gelu-prefill", "rope", "swiglu",
)  # fmt: skip
"""Changes of the search are tried on these alone, half of them. Its first versions saw the others, too."""
ABLATIONS = ("bandit", "novelty", "tuning")
PARTS = ("held out", "held out and deep", "deep", "shallow")
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

    def __call__(self) -> Courses:
        return {(load_landscape(path, self.noise).name, self.seed): self._on(path) for path in self.paths}

    def _on(self, path: Path) -> Course:
        land = load_landscape(path, self.noise)
        if self.search:
            meter = searches()[self.search](land, self.seed, self.most, max(MOMENTS), self.off != "tuning")
        else:
            ours = Ours(land, self.seed, self.off)
            ours.run(self.most, max(MOMENTS))
            meter = ours.meter
        return course_of(meter, self.most)


@cache
def load_landscape(path: Path, noise: float = 0.0) -> Landscape:
    """Return a landscape, read once by each process."""
    return load(path, noise)


def _run(job: Job) -> Courses:
    return job()


def interval(logs: list[float]) -> tuple[float, float]:
    """Return a bootstrap interval (95 %) of the geometric mean."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(logs, k=len(logs))) for _ in range(2000))
    return math.exp(means[50]), math.exp(means[1949])


def compare_needs(mine: Courses, other: Courses) -> dict[str, object]:
    """Return how many times the measurements the other needs, and its own need."""
    return {**ratios(_needs(mine), _needs(other)), **needed(other)}


def _needs(courses: Courses) -> Amounts:
    return {key: course.needed for key, course in courses.items()}


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
    if problem in TRIED_ON:
        return {depth}
    return {depth, "held out"} | ({"held out and deep"} if depth == "deep" else set())


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


def needed(found: Courses) -> dict[str, object]:
    """Return the need of a search: the median, the geometric mean, and each landscape's."""
    logs: dict[str, list[float]] = {}
    for (land, _), course in found.items():
        logs.setdefault(land.split(" ")[0], []).append(math.log(course.needed))
    every = [log for values in logs.values() for log in values]
    return {
        "median_needed": statistics.median(course.needed for course in found.values()),
        "mean_needed": round(math.exp(statistics.fmean(every)), 1),
        "by_landscape": {land: round(math.exp(statistics.fmean(values)), 1) for land, values in logs.items()},
    }


def _table(every: Callable[[str, str], Courses], most: int, tuner: str) -> dict[str, dict[str, Any]]:
    """Return the need of every search over ours, with and without the tuner, and what both reach by each moment."""
    table: dict[str, dict[str, Any]] = {}
    for setting in ("on", "off") if tuner == "both" else (tuner,):
        off = "" if setting == "on" else "tuning"
        mine = every("", off)
        for name in searches():
            other = every(name, off)
            table[f"{name}, tuner {setting}"] = row = compare_needs(mine, other)
            row["after"] = {str(moment): _moment(mine, other, moment, most) for moment in MOMENTS}
            print(f"{name}, tuner {setting}: {shown(row)}", file=sys.stderr, flush=True)
        table[f"ours, tuner {setting}"] = needed(mine)
    return table


def _moment(mine: Courses, other: Courses, moment: int, most: int) -> dict[str, Any]:
    """Return the comparison after so many proposals: for all landscapes, and for each part alone."""
    found: dict[str, Any] = compare_at(mine, other, moment, most)
    for part in PARTS:
        keys = [key for key in mine if part in _parts(_problem(key))]
        if keys:
            found[part] = compare_at({key: mine[key] for key in keys}, {key: other[key] for key in keys}, moment, most)
    return found


def _ablations(every: Callable[[str, str], Courses]) -> dict[str, dict[str, Any]]:
    """Return the need of ours without each mechanism, over that of the whole."""
    whole = every("", "")
    return {f"ours without {off}": compare_needs(whole, every("", off)) for off in ABLATIONS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4 if os.environ.get("QUICK") else 20)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--noise", type=float, default=0.0, help="least spread of a measurement's log; ablations alone")
    parser.add_argument("--tuner", choices=("on", "off", "both"), default="both", help="for all searches")
    parser.add_argument("--no-ablations", action="store_true", help="leave out ours without its mechanisms")
    parser.add_argument("--processes", type=int, default=None, help="searches at once (default: one per core)")
    parser.add_argument("--peers", type=Path, help="keep the other searches' courses here, and take those that it has")
    parser.add_argument("--landscapes", type=Path, default=FOLDER)
    parser.add_argument("--only", default="*", metavar="NAMES", help="only landscapes with these names, as in 'deep.*'")
    parser.add_argument("--output", type=Path, default=None, help="the file of the record")
    options = parser.parse_args()
    paths = tuple(sorted(options.landscapes.glob(f"{options.only}.jsonl.gz")))
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:

        @cache
        def every(search: str = "", off: str = "") -> Courses:
            jobs = [Job(paths, options.most, seed, search, off, options.noise) for seed in range(options.seeds)]
            kept = options.peers / f"{search}-{off or 'whole'}.json" if options.peers and search else None
            if kept is not None and kept.exists():
                return read_courses(kept.read_text())
            found = {key: course for courses in pool.map(_run, jobs) for key, course in courses.items()}
            if kept is not None:
                kept.write_text(written_courses(found))
            return found

        table = {
            **({} if options.noise else _table(every, options.most, options.tuner)),
            **({} if options.no_ablations else _ablations(every)),
        }
    lands = [load(path) for path in paths]
    for name, row in table.items():
        print(f"{name:<34} mean {row['mean_needed']:>6}   {shown(row)}")
        for moment, found in row.get("after", {}).items():
            shares = f"{found['share_of_best']:.0%} of the best known, ours {found['ours_share_of_best']:.0%}"
            print(f"{'':<34} after {moment} proposals {shares}   {shown(found)}")
    sizes = {land.name: {"kernels": len(land.kernels), "best": land.best} for land in lands}
    hardware = {"machine": platform.machine(), "python": platform.python_version()}
    peers = {name: version(name) for name, module in PACKAGES.items() if find_spec(module) is not None}
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
