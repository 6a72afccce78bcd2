"""Compare official times on a GPU with plain graph replays: `python -m bench.judge.clock [--device cuda:0]`.

Time residual + RMSNorm (examples/problems) and a softmax of 4096 x 4096, each with a hand-written Triton kernel, eager
PyTorch and torch.compile, twice: on the judge's wall clock, less the null child's rounds ("before"), and on the
device's own ("official"). Beside them stand a plain replay of the same calls and the kernels' own device time. Print a
table, and write it to bench/results/clock-DEVICE.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import machine
from evaluator.languages import detect
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.serve import make_backend
from evaluator.stages.candidate_children import construct
from evaluator.stages.judge import Judge
from evaluator.stages.time_candidate import baseline_contender
from evaluator.stages.trial import secret_generator
from evaluator.timing.bench import Bench
from evaluator.timing.contender import Contender
from evaluator.timing.protocol import STANDARD, Rules, TimingProtocol
from evaluator.types import Candidate, Problem, Stage, Workload

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
BEFORE = replace(STANDARD, device_slack=0.0)  # nothing but the wall clock is believed
RULES = Rules(least_pairs=8, most_pairs=8, racing=False, rehearse=False, round_us=10_000.0)
SOFTMAX = """import torch

WORKLOADS = [{"name": "softmax-4096", "rows": 4096, "width": 4096, "device": "cuda"}]


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs(rows=4096, width=4096):
    return [torch.randn(rows, width, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
"""
SOFTMAX_KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    at = tl.arange(0, BLOCK)
    inside = at < width
    h = tl.load(x + row + at, mask=inside, other=-float("inf")).to(tl.float32)
    h = tl.exp(h - tl.max(h))
    tl.store(y + row + at, (h / tl.sum(h)).to(y.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, width = x.shape
        softmax[(rows,)](x, y, width, BLOCK=triton.next_power_of_2(width), num_warps=8)
        return y
"""


def cases() -> list[tuple[Problem, Candidate]]:
    """Return the problems, each with a kernel."""
    norm = read_problem((ROOT / "examples" / "problems" / "rmsnorm_residual.py").read_text(), "rmsnorm_residual")
    kernel = (ROOT / "tests" / "gpu" / "candidates" / "honest_triton.py").read_text()
    softmax = read_problem(SOFTMAX, "softmax")
    return [(p, Candidate(source=s, language=detect(s))) for p, s in ((norm, kernel), (softmax, SOFTMAX_KERNEL))]


def measure(judge: Judge, problem: Problem, candidate: Candidate, modes: list[str]) -> list[dict[str, Any]]:
    """Return a row for each contender on each shown Workload."""
    rows: list[dict[str, Any]] = []
    with judge.children.start(candidate, Stage.TIMING) as subject, judge.session.references.start(problem) as reference:
        for workload in problem.workloads_for(judge.backend.kind):
            if workload.held_out:
                continue
            oracle = Oracle(problem, reference, workload.sizes, secret_generator())
            buffers = construct(subject, oracle, problem, Stage.TIMING).buffers
            contenders = [Contender("candidate", subject, True, buffers, plain=True)]
            contenders += [baseline_contender(judge.session, problem, workload, mode, oracle) for mode in modes]
            before = _times(judge, workload, oracle, contenders, BEFORE)
            after = _times(judge, workload, oracle, contenders, STANDARD)
            rows += [{"workload": workload.name, **after[c.name], **_prefixed(before[c.name])} for c in contenders]
    return rows


def _prefixed(row: dict[str, Any]) -> dict[str, Any]:
    return {"before_us": row["official_us"]}


def _times(
    judge: Judge, workload: Workload, oracle: Oracle, contenders: list[Contender], protocol: TimingProtocol
) -> dict[str, dict[str, Any]]:
    for contender in contenders:
        contender.forget_samples()
    bench = Bench(judge.session, workload, oracle, contenders, protocol=protocol)
    try:
        with judge.session.exclusive():
            bench.run(RULES)
            profiled = [contender.name for contender in contenders] if protocol is STANDARD else []
            loops = bench.plain_loops(profile=profiled)
    finally:
        bench.close()
    return {
        c.name: {
            "contender": c.name,
            "official_us": c.official_us(),
            "plain_us": loops[c.name].call_us if loops else None,
            "kernels_us": loops[c.name].kernels_us if loops else None,
            "clock": str(c.clock),
        }
        for c in contenders
    }


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        plain_us = row["plain_us"] or math.nan
        kernels = "-" if row["kernels_us"] is None else f"{row['kernels_us']:.2f}"
        off_us = row["official_us"] - plain_us
        fine = abs(off_us) <= max(0.05 * plain_us, 0.3)
        print(
            f"{row['workload']:<14}{row['contender']:<12}{row['before_us']:9.2f}{row['official_us']:10.2f}{plain_us:9.2f}"
            f"{kernels:>9}{off_us:+8.2f} us {off_us / plain_us:+6.1%}{'' if fine else '  !'}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--modes", nargs="*", default=["eager", "compile"])
    options = parser.parse_args()
    judge, start = Judge(make_backend(options.device)), time.perf_counter()
    seen_on, rows = machine.describe(), list[dict[str, Any]]()
    target = RESULTS / f"clock-{options.device.replace(':', '')}.json"
    print(f"{'workload':<14}{'contender':<12}{'before':>9}{'official':>10}{'plain':>9}{'kernels':>9}{'off by':>18}")
    try:
        for problem, candidate in cases():
            found = measure(judge, problem, candidate, options.modes)
            show(found)
            rows += found
            target.write_text(json.dumps({"seen_on": seen_on, "rows": rows}, indent=1) + "\n")
    finally:
        judge.close()
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
