"""Measure how many kernels per minute the judge handles on a GPU, compared with KernelBench's own evaluation.

    python -m bench.rate CHECKOUT [--device cuda:0] [--budget-s 520] [--kinds plain inline] [--judges 1 3]
        [--ours-alone] [--sample FILE] [--shard I/N] [--resume] [--output FILE]

CHECKOUT is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT). Its evaluation runs as its own
script runs it: a new spawned process per file, 5 correctness trials, 100 timed trials of the kernel and of the
reference by CUDA events. Ours judges the same files with the same references, at least 100 timed calls of each, by one
judge or by several that share the GPU, as the workers of a service do (KernelBench has no lock: two of its evaluations
at once would time each other). Builds are done ahead, outside both times, in as many processes as there are cores: for
KernelBench by running each file once (what `load_inline` and Triton keep on disk), for ours by the build stage. Kind
"inline" has fifty files; `load_inline` builds a third of those in CUDA C++. A folder without its history gives its
revision in a file REVISION. --ours-alone leaves KernelBench out, and gives no ratio: it serves to find out where our
time goes. --sample writes that for one judge (see bench/sampler.py), which slows it down.

Append a JSON line per file, and at the end one for each kind and number of judges with the rates and their ratio. The
ratio uses lines of this run alone: never across two leases. --resume leaves out problems for which an earlier run has
every file.
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

from bench import machine
from bench.rate import kernelbench
from bench.rate.files import File, files
from bench.rate.judges import candidate, judge_all
from bench.shards import of_shard
from evaluator.problem import read_problem
from evaluator.sandbox.build_cache import FOLDER_VARIABLE
from evaluator.serve import make_backend
from evaluator.stages.build import build
from evaluator.stages.judge import Judge

RESULTS = Path(__file__).parents[1] / "results"
KERNELBENCH, OURS = "kernelbench", "ours"
KINDS = ("plain", "inline")
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
    """Have each of `who` build every file into its cache on disk, the slowest files first. Return the seconds of each.

    A file that is not built in time, or fails, is named, and built again where it is judged.
    """
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
    """Build a file as KernelBench does, by running it once, or by our build stage.

    Return its name, the seconds, and the error as text: an exception might not survive the way to the parent.
    """
    who, one, folder, device = work
    start, failed = time.monotonic(), ""
    try:
        if who == KERNELBENCH:
            kernelbench.evaluate(one.problem, one.source, one.backend, folder, device, 1)
        else:
            build(_builder(device), read_problem(one.problem, "rate"), candidate(one))
    except Exception as error:  # noqa: BLE001  a third of the files are wrong, some of them in any way
        failed = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return one.name, time.monotonic() - start, failed


@functools.cache
def _builder(device: str) -> Judge:
    """Return this process's judge, as a worker of the build queue has one. Its cages end when this process does."""
    return Judge(make_backend(device))


def run_kernelbench(one: File, folder: Path, device: str) -> dict[str, Any]:
    """Run one file through KernelBench's evaluation, in a process of its own, as its script does it."""
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        work = (one.problem, one.source, one.backend, str(folder / one.name), device, TRIALS)
        try:
            found = pool.apply_async(kernelbench.evaluate, work).get(timeout=_FILE_S)
        except multiprocessing.TimeoutError:
            found = {"outcome": "out of time", "passed": False}
    return {**found, "wall_s": round(time.monotonic() - start, 3)}


def summary(
    kind: str,
    judges: int,
    some: Sequence[File],
    lines: Sequence[dict[str, Any]],
    wall_s: float,
    ahead_s: dict[str, float],
) -> dict[str, Any]:
    """Return rates over the files of one kind, and a ratio if both have judged them. Ours took `wall_s` for all of
    them."""
    names = {one.name for one in some}
    mine = [
        e for e in lines if e["file"] in names and (e["who"], e.get("judges"), e.get("kind")) == (OURS, judges, kind)
    ]
    found: dict[str, Any] = {
        "summary": "rate",
        "kind": kind,
        "judges": judges,
        "files": len(mine),
        "built_ahead_s": ahead_s,
    }
    theirs = [e for e in lines if e["file"] in names and e["who"] == KERNELBENCH]
    if len(theirs) == len(names):
        found[KERNELBENCH] = _rates(theirs, sum(e["wall_s"] for e in theirs))
    found[OURS] = _rates(mine, wall_s)
    for name, passed in (("passing_stages_s", True), ("rejected_stages_s", False)):
        found[OURS][name] = _stages([e["stages_s"] for e in mine if e["passed"] is passed])
    if KERNELBENCH in found:
        found["ratio"] = round(found[OURS]["per_minute"] / found[KERNELBENCH]["per_minute"], 2)
    return found


def _rates(some: Sequence[dict[str, Any]], wall_s: float) -> dict[str, Any]:
    return {
        "per_minute": round(60 * len(some) / wall_s, 2),
        "right_answers": sum(e["passed"] == e["right"] for e in some),
        "median_passing_s": _median([e["wall_s"] for e in some if e["passed"]]),
        "median_rejected_s": _median([e["wall_s"] for e in some if not e["passed"]]),
    }


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
    made.add_argument("--budget-s", type=float, default=520.0, help="start nothing more after so many seconds")
    made.add_argument("--shard", default="1/1", help="I/N: every N-th problem from the I-th")
    made.add_argument("--kinds", nargs="+", choices=KINDS, default=["plain"], help="which fifty files")
    made.add_argument(
        "--judges",
        nargs="+",
        type=int,
        default=[1],
        help="numbers of our judges to run at once, one number after the other",
    )
    made.add_argument("--ours-alone", action="store_true", help="without KernelBench")
    made.add_argument("--sample", type=Path, help="a file for the first judge's time by function")
    made.add_argument("--resume", action="store_true", help="leave out problems that the output has")
    made.add_argument("--output", type=Path)
    return made


class Run:
    """One run on one machine."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options, self._folder = options, folder
        self._end = time.monotonic() + options.budget_s
        self._log = Log(
            options.output or RESULTS / f"rate{'-alone' if options.ours_alone else ''}.jsonl", resume=options.resume
        )
        self._lease = {"lease": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "run": uuid.uuid4().hex}
        self._sets = {}
        for kind in options.kinds:
            every = files(load_inline=kind == "inline")
            names = of_shard(list(dict.fromkeys(one.problem for one in every)), options.shard)
            known = {p for p in names if all((OURS, f.name) in self._log.known for f in every if f.problem == p)}
            wanted = [p for p in names if p not in known] or names  # if all are known, all are measured again
            self._sets[kind] = [one for one in every if one.problem in wanted]
        self._lines: list[dict[str, Any]] = []

    def go(self) -> list[dict[str, Any]]:
        """Do as much as the budget allows. Return the summaries."""
        options = self._options
        about = {"kernelbench": _revision(options.checkout), "trials": TRIALS, "kinds": options.kinds}
        self._log.add({"about": machine.describe(), **self._lease, **about})
        every = list({one.name: one for some in self._sets.values() for one in some}.values())
        whose = (OURS,) if options.ours_alone else (OURS, KERNELBENCH)
        ahead_s = compile_ahead(every, whose, self._folder, options.device)
        first, *others = [(kind, judges) for kind in self._sets for judges in options.judges]
        wall_s = self._ours(*first)
        if not options.ours_alone:
            self._theirs(every)
        made = [self._summed(*first, wall_s, ahead_s)]
        for one in others:
            if time.monotonic() < self._end:
                made.append(self._summed(*one, self._ours(*one), ahead_s))
        return made

    def _summed(self, kind: str, judges: int, wall_s: float, ahead_s: dict[str, float]) -> dict[str, Any]:
        """Return the summary of one kind and number of judges, and log it at once: a lease may end any time."""
        made = summary(kind, judges, self._sets[kind], self._lines, wall_s, ahead_s)
        self._log.add({**made, **self._lease})
        return made

    def _theirs(self, every: Sequence[File]) -> None:
        for one in every:
            if time.monotonic() < self._end:
                self._note(KERNELBENCH, one, run_kernelbench(one, self._folder, self._options.device))

    def _ours(self, kind: str, judges: int) -> float:
        def note(one: File, found: dict[str, Any]) -> None:
            self._note(OURS, one, {**found, "judges": judges, "kind": kind})

        return judge_all(self._sets[kind], self._options.device, judges, note, self._options.sample)

    def _note(self, who: str, one: File, found: dict[str, Any]) -> None:
        self._lines.append({"who": who, "file": one.name, "right": one.right, **found, **self._lease})
        self._log.add(self._lines[-1])


def main() -> int:
    options = parser().parse_args()
    sys.path.insert(0, str(options.checkout / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(options.checkout / "src"), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="warpwright-rate-") as name:
        folder = Path(name)
        os.environ |= {FOLDER_VARIABLE: str(folder / "built"), "TRITON_CACHE_DIR": str(folder / "triton")}
        for one in Run(options, folder).go():
            print(f"rate: {json.dumps(one)}")
    return 0
