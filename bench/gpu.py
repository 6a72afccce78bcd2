"""Run everything that needs an NVIDIA GPU: `python -m bench.gpu [--budget-s 1500] [--only NAME ...]`.

The most visible steps run first: a whole optimisation, then the tests, then the other benchmarks. A machine with
several GPUs runs as many steps at once, one on each GPU with cores of its own. --cpu-lanes N sets two cores apart for
each of N lanes that judge on the CPU meanwhile (steps with names that end in _cpu; they run only when named or when
there are such lanes). A step that does not fit into the remaining budget is skipped and reported; a step that fails
does not stop the others. Each writes its own files under bench/results/. With --output those and each step's log are
also copied there (a rented GPU machine usually returns one folder). The long benchmarks continue where their files of
results end, so several short leases serve as well as one long one. Those in several shards write a file per shard below
parts/, which `python -m bench.shards` joins. --kernelbench CHECKOUT names a checkout of
https://github.com/ScalingIntelligence/KernelBench for the steps that need one; without it they are skipped. QUICK=1 is
passed on. Print a line per step, and a summary.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.search.composed import DEEP_PROBLEMS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
LANDSCAPES = ROOT / "bench" / "search" / "landscapes"
_CHECKOUT, _LEFT_S, _SHARD, _PART = "CHECKOUT", "LEFT_S", "SHARD", "PART"
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class Step:
    """One step. It starts if `usual_s` is left, and is ended after `limit_s`.

    In `command` LEFT_S stands for the remaining budget, CHECKOUT for KernelBench, SHARD for I/N, PART for a shard's
    file of results.
    """

    name: str
    command: tuple[str, ...]
    usual_s: float
    limit_s: float
    cpu: bool = False
    shards: int = 1


def _to(name: str) -> tuple[str, str]:
    return "--output", str(RESULTS / f"{name}.jsonl")


_RESUMED = ("--budget-s", _LEFT_S, "--resume")
_SHARDED = ("--shard", _SHARD, "--output", _PART)
_CUDA, _CPU = ("--device", "cuda:0", *_RESUMED), ("--device", "cpu", *_RESUMED, *_SHARDED)


def _landscape(problem: str) -> Step:
    """Return a step that records the deep landscape of a problem into the folder of the search's benchmark."""
    return Step(problem, ("bench.search.record", problem, "--shards", "12", *_CUDA), usual_s=100, limit_s=900)


_PYTEST = ("pytest", "-v", "--tb=short", "-p", "no:cacheprovider")
# Two judges per GPU: while one waits for a build or a sleeping cheat, the other works.
_TWO = ("-n", "2", "--dist", "worksteal", "-p", "no:benchmark")
_ADVERSARIAL = "tests/gpu/test_gpu_adversarial.py"
_OPTIMIZE = ("bench.optimize", "--device", "cuda:0", "--problem", "rmsnorm_residual", "--seconds", "120")
_PROFILE = str(RESULTS / "rate-profile.jsonl")
_SYNTHESIS = ("bench.synthesis", "--device", "cuda", "--output", "bench/results/synthesis-cuda.json")
STEPS = (
    Step("optimize", _OPTIMIZE, usual_s=400, limit_s=580),
    Step("inrun", ("bench.inrun", *_CUDA), usual_s=450, limit_s=900),
    Step("tests", (*_PYTEST, "--ignore", _ADVERSARIAL, "tests/gpu"), usual_s=210, limit_s=540),
    Step("anchors", ("bench.anchors", *_RESUMED), usual_s=220, limit_s=560),
    Step("rate", ("bench.rate", _CHECKOUT, "--kinds", "plain", "inline", *_CUDA), usual_s=500, limit_s=900),
    Step("rate_profile", ("bench.rate", _CHECKOUT, "--ours-alone", "--sample", _PROFILE, *_CUDA), 120, 400),
    Step("aa", ("bench.judge", "aa", "--confirms", "40", *_CUDA, *_to("aa-cuda")), usual_s=60, limit_s=900),
    Step("power", ("bench.judge", "power", "--confirms", "50", *_CUDA, *_to("power-cuda")), usual_s=60, limit_s=900),
    Step("mutation", ("bench.mutation", "--repeats", "20", *_CUDA), usual_s=60, limit_s=900),
    Step("soak", ("bench.soak", "--count", "200", *_CUDA), usual_s=60, limit_s=900),
    Step("kernelbench", ("bench.kernelbench", _CHECKOUT, "--sample", "60", *_CUDA), usual_s=60, limit_s=900),
    Step("adversarial", (*_PYTEST, *_TWO, "--shard", _SHARD, _ADVERSARIAL), usual_s=100, limit_s=900, shards=4),
    *map(_landscape, DEEP_PROBLEMS),
    Step("judge_gpu", ("bench.judge.gpu",), usual_s=120, limit_s=400),
    Step("clock", ("bench.judge.clock",), usual_s=120, limit_s=400),
    Step("grid", ("bench.judge", "grid", "--confirms", "40", *_CUDA, *_to("grid-cuda")), usual_s=60, limit_s=900),
    Step("synthesis", _SYNTHESIS, usual_s=300, limit_s=540),
    Step("soak_cpu", ("bench.soak", *_CPU), usual_s=60, limit_s=3600, cpu=True),
    Step("aa_cpu", ("bench.judge", "aa", *_CPU), usual_s=60, limit_s=3600, cpu=True, shards=4),
    Step("grid_cpu", ("bench.judge", "grid", *_CPU), usual_s=60, limit_s=3600, cpu=True, shards=4),
    Step("power_cpu", ("bench.judge", "power", *_CPU), usual_s=60, limit_s=3600, cpu=True, shards=4),
    Step("kernelbench_cpu", ("bench.kernelbench", _CHECKOUT, *_CPU), usual_s=60, limit_s=3600, cpu=True, shards=4),
    Step("mutation_cpu", ("bench.mutation", *_CPU), usual_s=60, limit_s=3600, cpu=True, shards=8),
    Step(
        "adversarial_cpu", (*_PYTEST, "--soak", "--shard", _SHARD, "tests/adversarial"),
        usual_s=200, limit_s=3600, cpu=True, shards=6,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lane:
    """A place for one step at a time: its GPU if it has one, and cores that no other lane uses."""

    name: str
    gpu: int | None
    cores: tuple[int, ...]

    def environment(self, scratch: Path) -> dict[str, str]:
        """Return the variables of a step's process: it sees this GPU as cuda:0, and has its own temporary files."""
        folder = scratch / self.name
        folder.mkdir(exist_ok=True)
        shown = "" if self.gpu is None else str(self.gpu)
        locks = {"WARPWRIGHT_LOCK_DIR": str(folder / "locks")}
        return {**os.environ, "CUDA_VISIBLE_DEVICES": shown, "TMPDIR": str(folder), **locks}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a step. `last` is the last line that it printed."""

    step: Step
    exit_code: int
    wall_s: float
    last: str


def lanes(gpus: int, cpu_lanes: int, cores: Sequence[int]) -> list[Lane]:
    """Assign cores: the last ones to CPU lanes, two each, and the others evenly to GPUs; the first takes the rest."""
    split = len(cores) - 2 * cpu_lanes
    if split < gpus:
        raise ValueError(f"{len(cores)} cores do not do for {gpus} GPUs and {cpu_lanes} lanes of the CPU")
    ours, others = list(cores[:split]), cores[split:]
    each = split // gpus
    first = split - each * (gpus - 1)
    found = [Lane("gpu0", 0, tuple(ours[:first]))]
    found += [Lane(f"gpu{n}", n, tuple(ours[first + (n - 1) * each : first + n * each])) for n in range(1, gpus)]
    return found + [Lane(f"cpu{n}", None, tuple(others[2 * n : 2 * n + 2])) for n in range(cpu_lanes)]


def shards(step: Step) -> list[Step]:
    """Return a step as its shards, each a step of its own."""
    if step.shards == 1 and _SHARD not in step.command:
        return [step]
    found = []
    for number in range(1, step.shards + 1):
        name = step.name if step.shards == 1 else f"{step.name}-{number}"
        known = {_SHARD: f"{number}/{step.shards}", _PART: str(RESULTS / "parts" / f"{name}.jsonl")}
        found.append(replace(step, name=name, command=tuple(known.get(word, word) for word in step.command)))
    return found


class Work:
    """Give steps to lanes until none is left, or too little time."""

    def __init__(self, options: argparse.Namespace, logs: Path, scratch: Path) -> None:
        self._options, self._logs, self._scratch = options, logs, scratch
        self.started, self._clock = time.time(), time.monotonic()
        self.outcomes: list[Outcome] = []

    def run_all(self, lanes_: Iterable[Lane], steps: Iterable[Step]) -> None:
        todo: dict[bool, queue.SimpleQueue[Step]] = {True: queue.SimpleQueue(), False: queue.SimpleQueue()}
        for step in steps:
            todo[step.cpu].put(step)
        threads = [threading.Thread(target=self._lane, args=(lane, todo[lane.gpu is None])) for lane in lanes_]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for step in (one.get() for one in todo.values() for _ in range(one.qsize())):
            print(f"{step.name:18} left out: no lane for it", flush=True)

    def _lane(self, lane: Lane, todo: queue.SimpleQueue[Step]) -> None:
        while True:
            try:
                step = todo.get_nowait()
            except queue.Empty:
                return
            left_s = self._options.budget_s - (time.monotonic() - self._clock)
            if step.usual_s > left_s:
                print(f"{step.name:18} left out: {left_s:.0f} s are left, it wants {step.usual_s:g}", flush=True)
                continue
            one = self._run(lane, step, left_s)
            self.outcomes.append(one)
            print(f"{step.name:18} exit {one.exit_code:3} in {one.wall_s:6.1f} s: {one.last}", flush=True)

    def _run(self, lane: Lane, step: Step, left_s: float) -> Outcome:
        """Run one step as a process, with its output in NAME.log. A step that is out of time ends with 124."""
        known = {_CHECKOUT: str(self._options.kernelbench), _LEFT_S: f"{max(10.0, left_s - 30):g}"}
        command = [known.get(word, word) for word in step.command]
        start, log = time.monotonic(), self._logs / f"{step.name}.log"
        pinned = (
            "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(',')));"
            " os.execv(sys.executable, [sys.executable, '-m', *sys.argv[2:]])"
        )
        with log.open("w", encoding="utf-8") as sink:
            process = subprocess.Popen(
                [sys.executable, "-c", pinned, ",".join(map(str, lane.cores)), *command],
                cwd=ROOT, stdout=sink, stderr=subprocess.STDOUT, env=lane.environment(self._scratch),
            )  # fmt: skip
            try:
                code = process.wait(min(step.limit_s, left_s))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # pytest then prints its results so far
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait(_END_S)
                code = 124
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return Outcome(step, code, time.monotonic() - start, lines[-1][:200] if lines else "")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--budget-s", type=float, default=1500.0, help="seconds for all steps together")
    made.add_argument(
        "--only", nargs="+", choices=[step.name for step in STEPS], help="run only these steps, in this order"
    )
    made.add_argument("--gpus", type=int, default=1, help="number of GPUs to use at once")
    made.add_argument("--cpu-lanes", type=int, default=0, help="lanes of two cores for judging on the CPU")
    made.add_argument("--kernelbench", type=Path, metavar="CHECKOUT", help="for the steps that read KernelBench")
    made.add_argument("--output", type=Path, help="a folder for copies of results and logs")
    return made


def _chosen(options: argparse.Namespace) -> list[Step]:
    by_name = {step.name: step for step in STEPS}
    found = []
    for step in [by_name[name] for name in options.only or by_name]:
        if _CHECKOUT in step.command and options.kernelbench is None:
            print(f"{step.name:18} left out: it needs --kernelbench CHECKOUT", flush=True)
        elif not step.cpu or options.cpu_lanes:
            found += shards(step)
    return found


def main() -> int:
    options = parser().parse_args()
    steps, every = _chosen(options), lanes(options.gpus, options.cpu_lanes, sorted(os.sched_getaffinity(0)))
    (RESULTS / "parts").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="warpwright-gpu-", ignore_cleanup_errors=True) as scratch:
        logs = options.output or Path(scratch)
        logs.mkdir(parents=True, exist_ok=True)
        work = Work(options, logs, Path(scratch))
        work.run_all(every, steps)
        if options.output:
            for path in (*RESULTS.glob("*.json*"), *RESULTS.glob("parts/*.json*"), *LANDSCAPES.glob("deep.*.jsonl.gz")):
                if path.stat().st_mtime >= work.started:
                    shutil.copy2(path, options.output)
    failed = sorted(one.step.name for one in work.outcomes if one.exit_code)
    print(f"gpu: {len(work.outcomes)} of {len(steps)} steps run, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
