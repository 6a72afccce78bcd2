"""How many kernels a minute the judge gets through on a GPU, beside KernelBench's own evaluation of the same files.

    python -m bench.rate CHECKOUT [--device cuda:0] [--budget-s 520] [--load-inline] [--ours-alone] [--shard I/N]
        [--resume] [--output FILE]

CHECKOUT is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT); its evaluation runs as its own
script runs it: a fresh spawned process per file, 5 correctness trials, 100 timed trials of the kernel and of the
reference by CUDA events. Ours judges the same files with the same references, at least 100 timed calls of each. Builds
are done ahead, outside both times, in as many processes as there are cores: for KernelBench what `load_inline` and
Triton keep on disk, by running each file once; for ours by the build stage. A folder without its history says its
revision in a file REVISION. --ours-alone leaves KernelBench out, and says nothing of a ratio: it is for looking where
our time goes (`python -m bench.sampler FILE bench.rate ...`).

Problem by problem, first one then the other, as long as the budget lasts. Appends a JSON line per file, and at the end
one with the rates and their ratio, which is formed of lines of this run alone: never across two leases.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine, rate_kernelbench
from bench.judge import eager_only
from bench.rate_files import File, files
from evaluator.build import build
from evaluator.built import FOLDER_VARIABLE
from evaluator.judge import Judge
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.serve import make_backend
from evaluator.types import Candidate, Problem, Verdict

RESULTS = Path(__file__).parent / "results"
KERNELBENCH, OURS = "kernelbench", "ours"
TRIALS = 100
_AHEAD_S = 180.0
_FILE_S = 120.0


class Log:
    """JSON lines, appended to."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8").splitlines() if resume and path.exists() else []
        self.known = {(e["who"], e["file"]) for e in map(json.loads, before) if "file" in e}
        self._file = path.open("a", encoding="utf-8")

    def add(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()
        if "file" in entry:
            print(
                f"{entry['who']:12} {entry['file']:32} {entry['wall_s']:7.2f} s  {entry['outcome'][:100]}", flush=True
            )


def compile_ahead(some: Sequence[File], who: Sequence[str], folder: Path, device: str) -> dict[str, float]:
    """Have each of `who` build every file into what it keeps on disk, whatever takes long first. Seconds that each
    took; a file that is not built in time, or in vain, is named, and built again where it is judged."""
    context = multiprocessing.get_context("spawn")
    workers = min(len(some), max(1, len(os.sched_getaffinity(0)) - 1))
    ordered = sorted(some, key=lambda one: "load_inline" not in one.source)
    took = {}
    for one_of_them in who:
        start, waiting = time.monotonic(), {one.name for one in ordered}
        work = [(one_of_them, one, str(folder / one.name), device) for one in ordered]
        with context.Pool(workers) as pool:
            built = pool.imap_unordered(build_one, work)
            try:
                for _ in work:
                    name, seconds, failed = built.next(max(0.0, _AHEAD_S - (time.monotonic() - start)))
                    waiting.remove(name)
                    print(f"{one_of_them:12} {name:32} {seconds:7.2f} s  ahead {failed}", flush=True)
            except multiprocessing.TimeoutError:
                print(f"{one_of_them:12} not built within {_AHEAD_S:g} s: {', '.join(sorted(waiting))}", flush=True)
        took[one_of_them] = round(time.monotonic() - start, 1)
    return took


def build_one(work: tuple[str, File, str, str]) -> tuple[str, float, str]:
    """Build a file as KernelBench does, by running it once, or by our build stage. Its name, seconds, and what went
    wrong: an exception might not survive the way to the parent."""
    who, one, folder, device = work
    start, failed = time.monotonic(), ""
    try:
        if who == KERNELBENCH:
            rate_kernelbench.evaluate(one.problem, one.source, one.backend, folder, device, 1)
        else:
            build(_builder(device), read_problem(one.problem, one.name), _candidate(one))
    except Exception as error:  # noqa: BLE001  a third of the files are wrong, some of them in any way
        failed = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return one.name, time.monotonic() - start, failed


@functools.cache
def _builder(device: str) -> Judge:
    """This process's judge, as a worker of the build queue has one. Its cages end when this process does."""
    return Judge(make_backend(device))


def _candidate(one: File) -> Candidate:
    return Candidate(source=one.source, language=detect(one.source), proposer="bench")


def theirs(one: File, folder: Path, device: str) -> dict[str, Any]:
    """One file through KernelBench's evaluation, in a process of its own, as its script does it."""
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        work = (one.problem, one.source, one.backend, str(folder / one.name), device, TRIALS)
        try:
            found = pool.apply_async(rate_kernelbench.evaluate, work).get(timeout=_FILE_S)
        except multiprocessing.TimeoutError:
            found = {"outcome": "out of time", "passed": False}
    return {**found, "wall_s": round(time.monotonic() - start, 3)}


def ours(judge: Judge, problem: Problem, one: File) -> dict[str, Any]:
    """The same file through the judge."""
    start = time.monotonic()
    found = judge.judge(problem, _candidate(one), eager_only(judge, problem))
    wall_s = time.monotonic() - start
    timed = [sum(m.diagnostics["round_calls"]) * m.diagnostics["pairs"] // 2 for m in found.measurements]
    return {
        "outcome": f"{found.verdict}: {found.reason}"[:300],
        "passed": found.verdict is Verdict.PASSED,
        "wall_s": round(wall_s, 3),
        "stages_s": dict(found.duration_s),
        "timed_calls": min(timed, default=0),
    }


def summary(lines: Sequence[dict[str, Any]], ahead_s: dict[str, float]) -> dict[str, Any]:
    """Rates over the files that everybody has judged in this run; a ratio, if there are two."""
    both = set.intersection(*({e["file"] for e in lines if e["who"] == who} for who in ahead_s))
    found: dict[str, Any] = {"summary": "rate", "files": len(both), "built_ahead_s": ahead_s}
    for who in ahead_s:
        mine = [e for e in lines if e["who"] == who and e["file"] in both]
        if not mine:
            return found
        found[who] = {
            "per_minute": round(60 * len(mine) / sum(e["wall_s"] for e in mine), 2),
            "right_answers": sum(e["passed"] == e["right"] for e in mine),
            "median_passing_s": _median([e["wall_s"] for e in mine if e["passed"]]),
            "median_rejected_s": _median([e["wall_s"] for e in mine if not e["passed"]]),
        }
    passing = [e["stages_s"] for e in lines if e["who"] == OURS and e["passed"]]
    refused = [e["stages_s"] for e in lines if e["who"] == OURS and not e["passed"]]
    found[OURS]["passing_stages_s"], found[OURS]["rejected_stages_s"] = _stages(passing), _stages(refused)
    if KERNELBENCH in found:
        found["ratio"] = round(found[OURS]["per_minute"] / found[KERNELBENCH]["per_minute"], 2)
    return found


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def _stages(found: Sequence[dict[str, float]]) -> dict[str, float]:
    names = sorted({name for stages in found for name in stages})
    return {name: round(statistics.median(stages.get(name, 0.0) for stages in found), 3) for name in names}


def _revision(checkout: Path) -> str:
    written = checkout / "REVISION"
    if written.exists():
        return written.read_text(encoding="utf-8").strip()
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("checkout", type=Path)
    made.add_argument("--device", default="cuda:0")
    made.add_argument("--budget-s", type=float, default=520.0)
    made.add_argument("--shard", default="1/1", help="I/N: every N-th problem from the I-th")
    made.add_argument("--load-inline", action="store_true", help="some of the CUDA files are built by load_inline")
    made.add_argument("--ours-alone", action="store_true", help="without KernelBench")
    made.add_argument("--resume", action="store_true", help="leave out files that the output has of both")
    made.add_argument("--output", type=Path)
    return made


def main() -> int:
    options = parser().parse_args()
    sys.path.insert(0, str(options.checkout / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(options.checkout / "src"), os.environ.get("PYTHONPATH", "")])
    kind = ("inline" if options.load_inline else "plain") + ("-ours" if options.ours_alone else "")
    whose = (OURS,) if options.ours_alone else (KERNELBENCH, OURS)
    log = Log(options.output or RESULTS / f"rate-{kind}.jsonl", resume=options.resume)
    lease = {"lease": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "run": uuid.uuid4().hex}
    revision = _revision(options.checkout)
    log.add({"about": machine.describe(), **lease, "kernelbench": revision, "trials": TRIALS, "kind": kind})
    index, _, count = options.shard.partition("/")
    every = files(load_inline=options.load_inline)
    if all((OURS, one.name) in log.known for one in every):
        log.known.clear()  # there is nothing to go on with: every file is measured again
    names = list(dict.fromkeys(one.problem for one in every))[int(index) - 1 :: int(count)]
    lines: list[dict[str, Any]] = []
    end = time.monotonic() + options.budget_s
    with tempfile.TemporaryDirectory(prefix="warpwright-rate-") as name:
        folder = Path(name)
        os.environ |= {FOLDER_VARIABLE: str(folder / "built"), "TRITON_CACHE_DIR": str(folder / "triton")}
        left = [one for one in every if one.problem in names and (OURS, one.name) not in log.known]
        ahead_s = compile_ahead(left, whose, folder, options.device)
        judge = Judge(make_backend(options.device))
        try:
            judge.warm()  # as in a service that runs; KernelBench has nothing of the kind
            for source in names:
                some = [one for one in every if one.problem == source]
                if time.monotonic() > end or all((OURS, one.name) in log.known for one in some):
                    continue
                problem = read_problem(source, some[0].name)
                for who in whose:
                    for one in some:
                        found = theirs(one, folder, options.device) if who == KERNELBENCH else ours(judge, problem, one)
                        lines.append({"who": who, "file": one.name, "right": one.right, **found, **lease})
                        log.add(lines[-1])
        finally:
            judge.close()
    result = {**summary(lines, ahead_s), **lease}
    log.add(result)
    print(f"rate: {json.dumps(result)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
