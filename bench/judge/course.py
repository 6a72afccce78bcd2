"""Show where one judge's seconds go in the course of a run: `python -m bench.judge.course [--device cpu|cuda:0]`.

Admission, the Baselines that are ready, then judgements of the synthesiser's Candidates, quick ones as a search asks
for them, and a confirmation of the fastest: in this process, so that each is sampled by itself (`bench.sampler`). Each
Candidate is built before the first one is judged, and the judge uses its spare time meanwhile, as it does in a run.
Prints each request's seconds by stage, the functions that took longest, with callees and without, and the operations
for which the judge waited longest in its children.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from bench.sampler import Sampler
from evaluator.problem import read_problem
from evaluator.sandbox.process import ChildProcess, PendingRequest
from evaluator.serve import make_backend
from evaluator.stages.admit import admit
from evaluator.stages.baseline import baseline_so_far
from evaluator.stages.build import build
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge
from evaluator.types import BaselineReport, Candidate, DeviceKind, Evaluation, Problem, Ratio
from synthesis.strategies import sequence
from tests.gpu.judging import of_source
from tests.synthesis import checking

ROOT = Path(__file__).resolve().parents[2]
Done = TypeVar("Done")


def candidates_of(source: str, kind: str, count: int) -> list[Candidate]:
    """Return the synthesiser's first Candidates of a problem."""
    shown = checking.sizes_of(source, kind)
    drafts = sequence(checking.graphs(source, shown), DeviceKind(kind), 0)
    return [of_source(draft.source) for draft, _ in zip(drafts, range(count), strict=False)]


@contextmanager
def waiting() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Count the requests to children and the seconds in which their replies were awaited, by operation."""
    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    receive = ChildProcess.receive_reply

    def receive_reply(child: ChildProcess, asked: PendingRequest) -> dict[str, Any]:
        start = time.perf_counter()
        try:
            return receive(child, asked)
        finally:
            calls[asked.op] += 1
            seconds[asked.op] += time.perf_counter() - start

    with mock.patch.object(ChildProcess, "receive_reply", receive_reply):
        yield calls, seconds


def sampled(name: str, lines: int, work: Callable[[], Done]) -> Done:
    """Do the work, and print how long it took and where."""
    sampler, start = Sampler(threading.get_ident()), time.perf_counter()
    with waiting() as (calls, seconds):
        try:
            return work()
        finally:
            _print(name, lines, sampler, time.perf_counter() - start)
            for op, waited_s in seconds.most_common(lines // 3):
                print(f"{waited_s:8.2f} {calls[op]:8d}  {op}", flush=True)


def _print(name: str, lines: int, sampler: Sampler, took: float) -> None:
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        sampler.stop(Path(file.name))
        rows = [json.loads(line) for line in Path(file.name).read_text().splitlines()]
    print(f"== {name}: {took:.2f} s", flush=True)
    shown = [row for row in rows if row["where"].count(":") == 2 and row["inclusive_s"] >= took / 40][:lines]
    for row in shown:
        print(f"{row['inclusive_s']:8.2f} {row['own_s']:8.2f}  {row['where']}")
    print("   own:")
    for row in sorted(rows, key=lambda row: -row["own_s"])[: lines // 3]:
        print(f"{row['inclusive_s']:8.2f} {row['own_s']:8.2f}  {row['where']}", flush=True)


def in_words(found: Evaluation) -> str:
    return f"{found.verdict} {found.reason[:200]} {dict(found.duration_s)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--problem", type=Path, default=ROOT / "examples" / "problems" / "softmax_scale_mask.py")
    parser.add_argument("--candidates", type=int, default=3)
    parser.add_argument("--lines", type=int, default=45, help="functions to print of each request")
    parser.add_argument("--no-confirmation", action="store_true")
    options = parser.parse_args()
    source = options.problem.read_text(encoding="utf-8")
    problem = read_problem(source, options.problem.stem)
    candidates = candidates_of(source, options.device.partition(":")[0], options.candidates)
    judge = Judge(make_backend(options.device))
    judge.compiles_ahead = True
    try:
        course(judge, problem, candidates, options)
    finally:
        judge.close()


def course(judge: Judge, problem: Problem, candidates: list[Candidate], options: argparse.Namespace) -> None:
    lines = options.lines
    sampled("warm", 9, judge.warm)
    print(sampled("admit", lines, lambda: admit(judge, problem)).reason)
    judge.expected = problem
    report: BaselineReport = sampled("baseline", lines, lambda: baseline_so_far(judge, problem, None))
    print([(one.mode, one.workload, round(one.median_us, 1)) for one in report.times], report.pending)
    for number, candidate in enumerate(candidates):
        found = sampled(f"build {number}", 9, partial(build, judge, problem, candidate))
        print("refused" if found.evaluation else "built", found.duration_s)
    sampled("spare time", lines, lambda: [None for _ in iter(judge.use_spare_time, False)])
    best: dict[str, float] = {}
    fastest: tuple[float, Candidate] | None = None
    for number, candidate in enumerate(candidates):
        ask = partial(judge.judge, problem, candidate, report, quick=True, best=dict(best))
        judged = sampled(f"judge {number}", lines, ask)
        print(in_words(judged))
        over = [one for one in judged.speedups if one.against == "fastest"]
        total = next((one.value for one in over if one.workload is None), None)
        if total is not None and (fastest is None or total > fastest[0]):
            fastest, best = (total, candidate), by_workload(over)
    if fastest is not None and not options.no_confirmation:
        confirmed = sampled("confirm", lines, lambda: confirm(judge, problem, fastest[1], None, report))
        print(in_words(confirmed), confirmed.evidence.get("seconds"))


def by_workload(ratios: Sequence[Ratio]) -> dict[str, float]:
    return {one.workload: one.value for one in ratios if one.workload is not None}


if __name__ == "__main__":
    main()
