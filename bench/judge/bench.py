"""Measure how far the judge's figures can be trusted: A/A confirmations, a power curve, and its time by stage.

    python -m bench.judge [aa|grid|power|cost ...] [--device cpu|cuda:0] [--confirms 100] [--brief] [--budget-s S]
        [--shard I/N] [--resume] [--output FILE]

aa confirms a kernel against itself: how many 95 % intervals contain 1, how many promotions (none may be). grid does the
same over operations and sizes, through judge and confirm, with official times beside plain loops' (`bench.judge.grid`).
power confirms kernels slowed by a known 1, 2, 3 and 5 % against the unslowed one: how many differences were found. cost
takes the seconds by stage of judging right and wrong kernels: median passing and median rejected.

Append a JSON line per piece of work to bench/results/judge-DEVICE.jsonl; with --resume existing lines count as done.
Every ratio comes from one confirmation, measured in one session; with --brief it has half the pairs, as where a gain is
sure. --shard I/N takes every N-th from the I-th (from 1). QUICK=1: 2 confirms, 1 per step. It needs a machine where
nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.judge import grid
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.serve import make_backend
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.timing.protocol import STANDARD
from evaluator.tools import tool
from evaluator.types import BaselineReport, BaselineTime, Candidate, Clock, DeviceKind, Evaluation, Interval, Problem

RESULTS = Path(__file__).parents[1] / "results"
QUICK = bool(os.environ.get("QUICK"))
STEPS = (0, 1, 2, 3, 5)

PROBLEM = """import torch

WORKLOADS = [
    {"name": "rows", "rows": 512, "hidden": 1024, "device": "cpu"},
    {"name": "rows-cuda", "rows": 16384, "hidden": 1024, "device": "cuda"},
]


class Model(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs(rows=512, hidden=1024):
    return [torch.randn(rows, hidden)]


def get_init_inputs(hidden=1024):
    return [hidden]
"""
# On a CPU the kernel waits for `EXTRA` percent of its own time; on a GPU that percentage of the rows is
# computed twice.
KERNEL = '''import ctypes

import torch
from warpwright_native import load_cpp

SOURCE = r"""
#include <chrono>
#include <cmath>
extern "C" void rmsnorm(const float* x, const float* w, float* y, long rows, long n, long percent) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  for (long r = 0; r < rows; r++) {
    const float* p = x + r * n;
    float lanes[16] = {0};
    for (long i = 0; i + 16 <= n; i += 16) for (int j = 0; j < 16; j++) lanes[j] += p[i + j] * p[i + j];
    float sum = 0;
    for (int j = 0; j < 16; j++) sum += lanes[j];
    for (long i = n / 16 * 16; i < n; i++) sum += p[i] * p[i];
    float scale = 1.0f / std::sqrt(sum / n + 1e-6f);
    for (long i = 0; i < n; i++) y[r * n + i] = p[i] * scale * w[i];
  }
  auto end = Clock::now() + (Clock::now() - begin) * percent / 100;
  while (Clock::now() < end) {}
}
"""
lib = load_cpp(SOURCE)
EXTRA = {extra}


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.numel() // x.shape[-1], x.shape[-1]
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.weight, y)]
        lib.rmsnorm(*pointers, ctypes.c_long(rows), ctypes.c_long(n), ctypes.c_long(EXTRA))
        return y
'''
CUDA_KERNEL = '''import torch
from warpwright_native import load_cuda

SOURCE = r"""
extern "C" __global__ void rmsnorm(const float* x, const float* w, float* y, int rows, int n) {
  __shared__ float parts[8];
  size_t row = blockIdx.x % rows;
  const float* p = x + row * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += p[i] * p[i];
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; i++) sum += parts[i];
  float scale = 1.0f / sqrtf(sum / n + 1e-6f);
  for (int i = threadIdx.x; i < n; i += 256) y[row * n + i] = p[i] * scale * w[i];
}
"""
launch = load_cuda(SOURCE).kernel("rmsnorm")
EXTRA = {extra}


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.numel() // x.shape[-1], x.shape[-1]
        launch(grid=(rows + rows * EXTRA // 100,), block=(256,), args=(x, self.weight, y, rows, n))
        return y
'''
WRONG = {
    "identity": "return x",
    "wrong epsilon": "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3) * self.weight",
    "no weight": "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
    "does not parse": "return x *",
    "raises": "raise ValueError('no')",
}


def kernel(extra: int, remark: str = "", *, cuda: bool = False) -> Candidate:
    source = (CUDA_KERNEL if cuda else KERNEL).replace("{extra}", str(extra)) + (f"# {remark}\n" if remark else "")
    return Candidate(source=source, language=detect(source), proposer="bench")


def wrong(line: str) -> Candidate:
    source = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, hidden, eps=1e-6):\n"
        "        super().__init__()\n        self.weight = torch.nn.Parameter(torch.ones(hidden))\n\n"
        f"    def forward(self, x):\n        {line}\n"
    )
    return Candidate(source=source, language=detect(source), proposer="bench")


def eager_only(judge: Judge, problem: Problem) -> BaselineReport:
    times = tuple(
        BaselineTime(mode="eager", workload=w.name, clock=Clock.CALLS, median_us=1, interval_us=Interval(low=1, high=1))
        for w in problem.workloads
    )
    return BaselineReport(problem_hash=problem.hash, device=judge.device, environment=judge.environment, times=times)


class Log:
    """The JSON lines of this device. With --resume existing ones are not measured again."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.path = path
        lines = self.path.read_text().splitlines() if resume and self.path.exists() else []
        self.entries = [entry for entry in map(json.loads, lines) if "key" in entry]
        self.done = {entry["key"] for entry in self.entries}
        path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            path.unlink(missing_ok=True)
        self._write({"seen_on": machine.describe()})

    def add(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        self._write(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def work(which: list[str], confirms: int, device: DeviceKind) -> Iterator[tuple[str, str, int]]:
    """Return (key, kind, step) of every piece of work, kinds interleaved so that a short budget includes each."""
    for index in range(confirms):
        if "grid" in which and index % 10 == 0:
            for operation, size in grid.cases(device):
                for through in grid.THROUGH:
                    yield f"grid {through} {operation} {size} {index // 10}", "grid", 0
        if "aa" in which:
            yield f"aa {index}", "aa", 0
        if "power" in which and index % 5 == 0:
            for step in STEPS[1:]:
                yield f"power {step} {index // 5}", "power", step
        if "cost" in which and index % 10 == 0:
            yield f"cost {index // 10}", "cost", 0


def compared(found: Evaluation) -> dict[str, Any]:
    ratio = found.speedup("champion")
    if ratio is None:
        return {"verdict": str(found.verdict), "reason": found.reason}
    return {
        "verdict": str(found.verdict),
        "ratio": ratio.value,
        "low": ratio.interval.low,
        "high": ratio.interval.high,
        "promote": found.evidence["promote"],
        "discarded": [m.diagnostics.get("discarded_pairs") for m in found.measurements],
    }


def perform(judge: Judge, problem: Problem, key: str, kind: str, step: int) -> dict[str, Any]:
    start, known = time.perf_counter(), eager_only(judge, problem)
    cuda = judge.backend.kind is DeviceKind.CUDA
    if kind == "grid":
        entry: dict[str, Any] = on_grid(judge, key)
    elif kind == "cost":
        passing = judge.judge(problem, kernel(0, key, cuda=cuda), known)
        rejected = {name: judge.judge(problem, wrong(line), known) for name, line in WRONG.items()}
        entry = {
            "passing": dict(passing.duration_s),
            "rejected": {name: dict(found.duration_s) for name, found in rejected.items()},
            "verdicts": [str(passing.verdict), *(str(found.verdict) for found in rejected.values())],
        }
    else:
        # The unslowed kernel is the Candidate, the slowed one the Champion: a ratio above 1 is the slowing.
        entry = compared(confirm(judge, problem, kernel(0, key, cuda=cuda), kernel(step, cuda=cuda), known))
    return {"key": key, "kind": kind, "step": step, **entry, "seconds": round(time.perf_counter() - start, 2)}


def on_grid(judge: Judge, key: str) -> dict[str, Any]:
    """Judge or confirm a call of torch against itself."""
    _, through, name, size, _ = key.split()
    operation = grid.OPERATIONS[name]
    problem = operation.problem(int(size), judge.backend.kind)
    known, ours = eager_only(judge, problem), operation.candidate(key)
    if through == "judge":
        found = judge.judge(problem, ours, known)
    else:
        found = confirm(judge, problem, ours, operation.candidate("the same"), known)
    return {"operation": name, **grid.told(found, through, int(size))}


def summary(entries: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = grid.summary(entries)
    for kind, step in [("aa", 0), *(("power", step) for step in STEPS[1:])]:
        some = [e for e in entries if (e["kind"], e["step"]) == (kind, step) and "ratio" in e]
        if some:
            found[f"{kind} {step} %"] = {
                "confirms": len(some),
                "intervals_with_1": sum(e["low"] <= 1 <= e["high"] for e in some),
                "median_ratio": round(statistics.median(e["ratio"] for e in some), 4),
                "median_half_width": round(statistics.median((e["high"] - e["low"]) / 2 for e in some), 4),
                "promotions": sum(e["promote"] for e in some),
            }
    costs = [e for e in entries if e["kind"] == "cost"]
    if costs:
        stages = sorted({stage for e in costs for stage in e["passing"]})
        found["passing_s"] = {s: round(statistics.median(e["passing"].get(s, 0.0) for e in costs), 3) for s in stages}
        totals = [sum(times.values()) for e in costs for times in e["rejected"].values()]
        found["rejected_total_s"] = round(statistics.median(totals), 3)
        found["rejected_s"] = {
            name: round(statistics.median(sum(e["rejected"][name].values()) for e in costs), 3) for name in WRONG
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", default=[], metavar="aa|grid|power|cost")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--confirms", type=int, default=2 if QUICK else 100)
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    parser.add_argument("--shard", default="1/1", metavar="I/N")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    which = options.which or ["aa", "power", "cost"]
    index, _, count = options.shard.partition("/")
    path = options.output or RESULTS / f"judge-{options.device.replace(':', '')}.jsonl"
    log, end = Log(path, options.resume), time.monotonic() + options.budget_s
    problem = read_problem(PROBLEM, "bench rmsnorm")
    protocol = replace(STANDARD, confirm=STANDARD.confirm_in_brief) if options.brief else STANDARD
    judge = Judge(make_backend(options.device), protocol=protocol)
    # Both take a minute of a confirmation on a GPU, and neither affects its timing.
    judge.tool_history.broken |= dict.fromkeys((tool.SANITIZER.name, tool.NCU.name), "not what is measured here")
    try:
        for number, (key, kind, step) in enumerate(work(which, options.confirms, judge.backend.kind)):
            if number % int(count) != int(index) - 1 or key in log.done:
                continue
            if time.monotonic() > end:
                break
            log.add(perform(judge, problem, key, kind, step))
            print(json.dumps(log.entries[-1])[:300], flush=True)
    finally:
        judge.close()
    result = {"machine": machine.describe(), "device": options.device, **summary(log.entries)}
    log.path.with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(summary(log.entries)))
