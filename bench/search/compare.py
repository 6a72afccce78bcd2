"""`python -m bench.search.compare`: measurements until within 5 % of the best known kernel, ours and others.

Every device measurement counts, the tuner's, re-measurements and confirmations (four each) too; what does not build is
never on the device and counts for nobody. A search that does not get there within --most counts as that many. A ratio
is the geometric mean over landscapes and seeds of what the other needs over what ours needs, with a bootstrap interval
(95 %). With the tuner on, everybody has ours. QUICK=1: four seeds. Losses are printed like the rest.
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
from pathlib import Path

from bench.search.landscape import Landscape, load
from bench.search.ours import Ours
from bench.search.peers import searches

FOLDER = Path(__file__).with_name("landscapes")
RESULT = Path(__file__).parents[1] / "results" / "search.json"
ABLATIONS = ("niches", "bandit", "novelty", "tuning", "re-measurement")
Needed = dict[tuple[str, int], int]


def ours(lands: list[Landscape], seeds: int, most: int, off: str) -> Needed:
    return {(land.name, seed): Ours(land, seed, off).run(most) or most for land in lands for seed in range(seeds)}


def interval(logs: list[float]) -> tuple[float, float]:
    """A bootstrap interval (95 %) of the geometric mean."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(logs, k=len(logs))) for _ in range(2000))
    return math.exp(means[50]), math.exp(means[1949])


def versus(mine: Needed, other: Needed) -> dict[str, object]:
    """How many times the measurements the other needs: above 1 where ours is ahead."""
    logs = [math.log(other[key] / mine[key]) for key in mine]
    low, high = interval(logs)
    verdict = "ahead" if low > 1 else "behind" if high < 1 else "no difference"
    return {"ratio": round(math.exp(statistics.fmean(logs)), 3), "low": round(low, 3), "high": round(high, 3),
            "verdict": verdict, **needed(other)}  # fmt: skip


def needed(found: Needed) -> dict[str, object]:
    """What a search needed: in the middle, on geometric average, and on each landscape."""
    logs: dict[str, list[float]] = {}
    for (land, _), count in found.items():
        logs.setdefault(land.split(" ")[0], []).append(math.log(count))
    every = [log for values in logs.values() for log in values]
    return {
        "median_needed": statistics.median(found.values()),
        "mean_needed": round(math.exp(statistics.fmean(every)), 1),
        "by_landscape": {land: round(math.exp(statistics.fmean(values)), 1) for land, values in logs.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4 if os.environ.get("QUICK") else 20)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--landscapes", type=Path, default=FOLDER)
    options = parser.parse_args()
    lands = [load(path) for path in sorted(options.landscapes.glob("*.jsonl.gz"))]
    table: dict[str, dict[str, object]] = {}
    for tuner in (True, False):
        mine = ours(lands, options.seeds, options.most, "" if tuner else "tuning")
        for name, search in searches().items():
            found = {
                (land.name, seed): search(land, seed, options.most, tuner) or options.most
                for land in lands
                for seed in range(options.seeds)
            }
            table[f"{name}, tuner {'on' if tuner else 'off'}"] = versus(mine, found)
            print(name, tuner, table[f"{name}, tuner {'on' if tuner else 'off'}"], file=sys.stderr, flush=True)
        table[f"ours, tuner {'on' if tuner else 'off'}"] = needed(mine)
    whole = ours(lands, options.seeds, options.most, "")
    for off in ABLATIONS:
        table[f"ours without {off}"] = versus(whole, ours(lands, options.seeds, options.most, off))
    for name, row in table.items():
        shown = f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}] {row['verdict']}" if "ratio" in row else ""
        print(f"{name:<34} mean {row['mean_needed']:>6}   {shown}")
    sizes = {land.name: {"kernels": len(land.kernels), "best": land.best} for land in lands}
    hardware = {"machine": platform.machine(), "python": platform.python_version()}
    body = {"hardware": hardware, "seeds": options.seeds, "most": options.most, "landscapes": sizes, "table": table}
    RESULT.write_text(json.dumps(body, indent=1) + "\n")
    print(f"{len(lands)} landscapes, {options.seeds} seeds, {sum(s['kernels'] for s in sizes.values())} kernels")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
