"""Time one problem's Candidates beside the Baselines in this process, in turn, round by round.

A round calls every contender for a few milliseconds, in another order each time; ratios are of pairs of one round.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 30))
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 30))

import torch

from bench.synthesis import module_from_file
from evaluator.timing.stats import ratio_interval
from evaluator.types import DeviceKind
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.errors import Unsupported
from synthesis.strategies import sequence
from tests.synthesis import checking

MODES = {"eager": None, "compile": "default", "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}
ROUND_S = 0.003
LOOK_ROUNDS = 7
Call = Callable[[], Any]


def seconds(call: Call, repeats: int) -> tuple[float, float]:
    """Return the seconds of a call: on the wall, and of this thread on its processor."""
    start, own = time.perf_counter(), time.thread_time()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats, (time.thread_time() - own) / repeats


def rounds(calls: Mapping[str, Call], count: int, rng: random.Random) -> dict[str, list[float]]:
    """Return the microseconds of each contender in each round.

    Of one thread it is its time on the processor, which other programs do not lengthen; of several, time on the wall.
    """
    alone = torch.get_num_threads() == 1
    repeats = {name: max(1, int(ROUND_S / min(seconds(call, 2)[1] for _ in range(2)))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name in rng.sample(sorted(calls), len(calls)):
            samples[name].append(seconds(calls[name], repeats[name])[alone] * 1e6)
    return samples


def shown_sizes(source: str) -> list[dict[str, Any]]:
    """Return the sizes of the CPU's Workloads that are not held out, with their names."""
    held = {"odd", "few-rows", "long-keys"}
    return [w for w in checking.sizes_of(source, "cpu") if w["name"] not in held]


class Bench:
    """Eager, torch.compile's modes and the Candidates of one problem on one Workload."""

    def __init__(self, source: str, sizes: Mapping[str, Any], drafts: Sequence[Draft], modes: Sequence[str]) -> None:
        self.name = sizes["name"]
        self.wrong: dict[int, str] = {}
        sizes = {k: v for k, v in sizes.items() if k != "name"}
        self.calls: dict[str, Call] = {}
        self.inputs: list[Any] = []
        for number, draft in enumerate(drafts):
            try:
                pair = checking.Pair(source, draft.source, sizes)
                pair.check()
            except Exception as error:  # noqa: BLE001  a wrong Candidate is a result of the bench
                self.wrong[number] = f"{type(error).__name__}: {str(error)[:200]}"
                continue
            self.calls[str(number)] = self._call(pair.candidate, pair.inputs)
        pair = checking.Pair(source, source.replace("class Model(", "class ModelNew("), sizes)
        for mode in modes:
            torch._dynamo.reset()
            kind = MODES[mode]
            made = pair.model if kind is None else torch.compile(pair.model, mode=kind, dynamic=False)
            self.calls[mode] = self._call(made, pair.inputs)
            self.calls[mode]()
            self.calls[mode]()

    @staticmethod
    def _call(model: Any, inputs: list[Any]) -> Call:
        return lambda: model(*inputs)


def measure(path: Path, threads: int, most: int, count: int, modes: Sequence[str]) -> dict[str, Any]:
    """Return one problem's row: the draft that is fastest over all Workloads, timed beside every Baseline."""
    source = path.read_text(encoding="utf-8")
    shown = shown_sizes(source)
    try:
        processor = Processor(threads, wide=torch.backends.cpu.get_cpu_capability() == "AVX512")
        drafts = list(islice(sequence(checking.graphs(source, shown), DeviceKind.CPU, 0, processor), most))
    except Unsupported as error:
        drafts, why = [], str(error)
    else:
        why = "" if drafts else "no draft"
    rng = random.Random(0)
    with torch.no_grad():
        benches = [Bench(source, sizes, drafts, modes) for sizes in shown]
        right = [n for n in range(len(drafts)) if all(str(n) in b.calls for b in benches)]
        looks = [{name: statistics.median(t) for name, t in rounds(b.calls, LOOK_ROUNDS, rng).items()} for b in benches]
        best = min(right, key=lambda n: statistics.fmean(math.log(one[str(n)]) for one in looks), default=None)
        rows = [_row(bench, modes, best, count, rng) for bench in benches]
    wrong = {str(n): text for b in benches for n, text in b.wrong.items()}
    row = {"problem": path.stem, "threads": threads, "drafts": len(drafts), "wrong": wrong, "why": why, "rows": rows}
    if best is not None:
        chosen = drafts[best]
        row |= {"draft": best, "strategy": chosen.strategy, "configuration": dict(chosen.configuration)}
        row |= {"source": chosen.source}
    return row


def _row(bench: Bench, modes: Sequence[str], best: int | None, count: int, rng: random.Random) -> dict[str, Any]:
    """Return the times of a Workload, and the ratios of each Baseline to ours with 95 % intervals."""
    contenders = {mode: bench.calls[mode] for mode in modes}
    if best is not None:
        contenders["ours"] = bench.calls[str(best)]
    samples = rounds(contenders, count, rng)
    row: dict[str, Any] = {"workload": bench.name}
    row["us"] = {name: round(statistics.median(times), 2) for name, times in samples.items()}
    if best is not None:
        row["ratios"] = {mode: _ratio(samples[mode], samples["ours"]) for mode in modes}
    return row


def _ratio(theirs: list[float], ours: list[float]) -> list[float]:
    value, interval = ratio_interval([math.log(a / b) for a, b in zip(theirs, ours, strict=True)])
    return [round(x, 4) for x in (value, interval.low, interval.high)]


def main() -> None:
    path, threads, drafts, count, modes = sys.argv[1:]
    torch.set_num_threads(int(threads))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-int(threads) :])
    checking.module = module_from_file
    row = measure(Path(path), int(threads), int(drafts), int(count), modes.split(","))
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
