"""Measure how much the choice among several models helps, on the recorded landscapes: `python -m bench.search.models`.

Each Run has the scripted models of a mixture (`bench.search.scripted`) and continues until within 5 % of the best known
kernel, or for --most measurements; its cost by then counts. Costs are measurements, dollars, and both with the time of
replies as device-seconds (`evolution.bandit`). The search as it is is compared with: models in turn; the bandit off, so
that all arms are equally likely; and the mixture's best model alone, which is known only afterwards. A ratio is the
geometric mean over landscapes and seeds of the other's cost over ours (above 1: ours is ahead) with a bootstrap
interval (95 %), for the deep and the shallow landscapes too. A search that does not get there counts with its cost by
then, so note how many did. Seeds are common to all landscapes: the row of two equal models shows the effect of chance.
An hour on one core (--processes 1). QUICK=1: two seeds, and nothing is recorded.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.search.compare import FOLDER, load_landscape, ratios, shown
from bench.search.ours import Ours
from bench.search.scripted import MIXTURES, Model
from evolution.bandit import USD_S

RESULT = Path(__file__).parents[1] / "results" / "search-models.json"
POLICIES = {"ours": "", "models in turn": "models", "bandit off": "bandit"}
ALONE = "the best alone"


@dataclass(frozen=True)
class Cost:
    """The cost of one Run. `cost_s`: all of it, as device-seconds."""

    measurements: float
    usd: float
    cost_s: float
    reached: bool


Costs = dict[tuple[str, int], Cost]


@dataclass(frozen=True)
class Job:
    """One search with these models, once on every landscape. `off` names a mechanism to leave out."""

    paths: tuple[Path, ...]
    most: int
    seed: int
    models: tuple[Model, ...]
    off: str = ""

    def __call__(self) -> Costs:
        found: Costs = {}
        for path in self.paths:
            land = load_landscape(path)
            run = Ours(land, self.seed, self.off, self.models)
            reached = run.run(self.most)
            found[land.name, self.seed] = Cost(run.meter.count, run.usd, run.cost_s, reached is not None)
        return found


def _run(job: Job) -> Costs:
    return job()


def amounts(costs: Costs, name: str) -> dict[tuple[str, int], float]:
    """Return one kind of cost, of every Run."""
    return {key: getattr(cost, name) for key, cost in costs.items()}


def row(mine: Costs, other: Costs) -> dict[str, Any]:
    """Return the other's need (geometric means), how often it got there, and its costs over ours."""
    kinds = ("measurements", "usd", "cost_s")
    return {
        **{kind: float(f"{_mean(amounts(other, kind)):.4g}") for kind in kinds},
        "reached": round(statistics.fmean(cost.reached for cost in other.values()), 3),
        "over_ours": {kind: ratios(amounts(mine, kind), amounts(other, kind)) for kind in kinds},
    }


def _mean(values: Mapping[tuple[str, int], float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values.values()))


def best_alone(alone: Mapping[str, Costs]) -> str:
    """Return the model that reaches the goal at the least cost, alone."""
    return min(alone, key=lambda name: _mean(amounts(alone[name], "cost_s")))


def _line(name: str, found: Mapping[str, Any]) -> str:
    needed = f"{found['measurements']:>5.1f} measurements  ${found['usd']:.4f} {found['cost_s']:>6.1f} s"
    ratio = "" if name in POLICIES and not POLICIES[name] else shown(found["over_ours"]["cost_s"])
    return f"  {name:<26}{needed}  {found['reached']:>5.0%}  {ratio}"


class _Searches:
    """Runs searches, each once."""

    def __init__(self, pool: ProcessPoolExecutor, paths: Sequence[Path], seeds: int, most: int) -> None:
        self.pool, self.paths, self.seeds, self.most = pool, tuple(paths), seeds, most
        self.known: dict[tuple[tuple[Model, ...], str], Costs] = {}

    def __call__(self, models: tuple[Model, ...], off: str = "") -> Costs:
        if (models, off) not in self.known:
            jobs = [Job(self.paths, self.most, seed, models, off) for seed in range(self.seeds)]
            found = {key: cost for costs in self.pool.map(_run, jobs) for key, cost in costs.items()}
            self.known[models, off] = found
        return self.known[models, off]


def mixture(search: _Searches, models: tuple[Model, ...]) -> dict[str, Any]:
    """Compare every way to choose among these models with ours."""
    mine = search(models)
    rows = {name: row(mine, search(models, off)) for name, off in POLICIES.items()}
    alone = {model.name: search((model,)) for model in models}
    best = best_alone(alone)
    return {**rows, ALONE: {"model": best, **row(mine, alone[best])}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2 if os.environ.get("QUICK") else 20)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--processes", type=int, default=None, help="searches at once (default: one per core)")
    parser.add_argument("--landscapes", type=Path, default=FOLDER)
    parser.add_argument("--output", type=Path, default=None, help="the file of the record")
    options = parser.parse_args()
    paths = sorted(options.landscapes.glob("*.jsonl.gz"))
    table: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        search = _Searches(pool, paths, options.seeds, options.most)
        for name, models in MIXTURES.items():
            table[name] = mixture(search, models)
            print(f"{name} ({', '.join(model.name for model in models)})")
            for policy, found in table[name].items():
                print(_line(f"{policy} ({found['model']})" if policy == ALONE else policy, found), flush=True)
    body = {
        "hardware": {"machine": platform.machine(), "python": platform.python_version()},
        "seeds": options.seeds,
        "most": options.most,
        "usd_s": USD_S,
        "landscapes": [load_landscape(path).name for path in paths],
        "mixtures": {name: [asdict(model) for model in models] for name, models in MIXTURES.items()},
        "table": table,
    }
    if options.output or not os.environ.get("QUICK"):
        (options.output or RESULT).write_text(json.dumps(body, indent=1) + "\n")
    print(f"{len(paths)} landscapes, {options.seeds} seeds")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
