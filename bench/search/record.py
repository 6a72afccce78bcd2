"""Record landscapes: `python -m bench.search.record [--budget-s S] [--resume] [--output DIR] [PROBLEM ...]`.

Real kernels of example problems (`bench.search.designs`) are compared and timed by `bench.search.bed`: several
processes per problem compile ahead, and one at a time holds the device. Each kernel gives one JSON line, failures and
their reasons included. A process that a kernel crashes or hangs is restarted after that kernel. The order is fixed by
the seed, so a later session continues with --resume. One kernel in twelve is measured again later, which gives a
measurement's spread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.search.composed import DEEP_PROBLEMS
from bench.search.composed import PROBLEMS as COMPOSED
from evaluator.types import Verdict

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("landscapes")
ROWS = ("rmsnorm_residual", "softmax_scale_mask", "layernorm", "cross_entropy", "swiglu", "bias_gelu", "rope")
PROBLEMS = (*DEEP_PROBLEMS, *COMPOSED, *ROWS)
HELD_S, SILENT_S = 30.0, 200.0
"""A worker hangs that holds the device, or says nothing at all, for so long."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), help="PROBLEM or PROBLEM-WORKLOAD")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--budget-s", type=float, default=500.0, help="seconds for the whole session")
    parser.add_argument("--shards", type=int, default=2, help="processes per problem")
    parser.add_argument("--resume", action="store_true", help="continue the record in --output")
    parser.add_argument("--most", type=int, default=10**6, help="kernels per process and problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=FOLDER)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        from bench.search.recording import work  # noqa: PLC0415  loads torch

        return work(options)
    return Session(options).run()


@dataclass
class Worker:
    """A process that records every Nth kernel of a problem, and its output file."""

    problem: str
    shard: int
    part: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    over: bool = False

    @property
    def current(self) -> Path:
        return self.part.with_suffix(".now")

    def silent_s(self, started: float) -> float:
        """Return the seconds since its last report."""
        return time.time() - max(started, self.current.stat().st_mtime if self.current.exists() else 0.0)

    def holds_s(self, lock: Path) -> float:
        """Return the seconds that it has held the device; 0.0 if another does."""
        if self.process is None or not lock.exists() or lock.read_text() != str(self.process.pid):
            return 0.0
        return time.time() - lock.stat().st_mtime


class Session:
    """One recording session: workers, their restarts, and the merging of their files."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.end = time.time() + options.budget_s
        self.folder = Path(tempfile.mkdtemp(prefix="landscape-"))
        self.started: dict[tuple[str, int], float] = {}
        options.output.mkdir(parents=True, exist_ok=True)
        self.old = {
            name: gzip.decompress((options.output / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
            for name in options.problems
            if options.resume and (options.output / f"{name}.jsonl.gz").exists()
        }
        for name, lines in self.old.items():
            (self.folder / f"{name}.known").write_text("\n".join(lines))

    def run(self) -> int:
        began = time.monotonic()
        workers = [
            Worker(name, shard, self.folder / f"{name}.{shard}.jsonl")
            for shard in range(self.options.shards)
            for name in self.options.problems
        ]
        merged = time.time()
        try:
            while time.time() < self.end and not all(worker.over for worker in workers):
                for worker in workers:
                    self._look_after(worker)
                if time.time() - merged > 15:
                    self._say(began, self._merge())
                    merged = time.time()
                time.sleep(0.2)
        finally:
            for worker in workers:
                if worker.process is not None and worker.process.poll() is None:
                    worker.process.kill()
                    worker.process.wait(20)
        counts = self._merge()
        shutil.rmtree(self.folder, ignore_errors=True)
        total = sum(sum(verdicts.values()) for verdicts in counts.values())
        for name, verdicts in counts.items():
            print(f"{name}: {verdicts}", flush=True)
        print(f"{total} kernels of {len(counts)} problems recorded in {time.monotonic() - began:.0f} s", flush=True)
        return 0 if total else 1

    def _say(self, began: float, counts: dict[str, dict[str, int]]) -> None:
        """Print one line of progress."""
        parts = [f"{name} " + (" ".join(f"{v} {n}" for v, n in found.items()) or "-") for name, found in counts.items()]
        total = sum(sum(found.values()) for found in counts.values())
        print(f"{time.monotonic() - began:.0f} s, {total} kernels: {'; '.join(parts)}", flush=True)

    def _look_after(self, worker: Worker) -> None:
        """Start, restart or end one worker."""
        if worker.over:
            return
        if worker.process is None:
            self._start(worker)
            return
        code = worker.process.poll()
        silence = worker.silent_s(self.started[worker.problem, worker.shard])
        holds = min(worker.holds_s(self.folder / "device.pid"), silence)
        if code is None and (silence > SILENT_S or holds > HELD_S):
            worker.process.kill()
            worker.process.wait(20)
            self._blame(worker, Verdict.TIMEOUT, f"nothing for {silence:.0f} s")
            self._start(worker)
        elif code == 0 or (code is not None and worker.starts > 40):
            worker.over = True
        elif code is not None:
            print(f"{worker.problem}.{worker.shard} ended with {code}, start {worker.starts}", flush=True)
            self._blame(worker, Verdict.RUNTIME_ERROR, f"the process ended with {code}")
            self._start(worker)

    def _start(self, worker: Worker) -> None:
        cache = self.folder / "cache"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
            "TRITON_CACHE_DIR": str(cache / "triton"),
            "TRITON_DISABLE_LINE_INFO": "1",
        }
        options = self.options
        command = [
            *(sys.executable, "-m", "bench.search.record", worker.problem, "--device", options.device),
            *(
                "--shards",
                str(options.shards),
                "--seed",
                str(options.seed),
                "--most",
                str(options.most),
                "--output",
                str(self.folder),
            ),
            *("--worker", f"{worker.shard}", "--budget-s", str(max(1.0, self.end - time.time()))),
        ]
        worker.starts += 1
        self.started[worker.problem, worker.shard] = time.time()
        worker.current.unlink(missing_ok=True)
        log = (self.folder / f"{worker.problem}.{worker.shard}.log").open("ab")
        worker.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        log.close()

    def _blame(self, worker: Worker, verdict: Verdict, reason: str) -> None:
        """Write the line of the kernel that a worker was at, unless the worker wrote it."""
        log = self.folder / f"{worker.problem}.{worker.shard}.log"
        last = (worker.part.read_text().splitlines() or [""])[-1] if worker.part.exists() else ""
        print(f"  log: {log.read_text(errors='replace')[-400:]!r} last line: {last[-300:]}", flush=True)
        if not worker.current.exists():
            return
        line = json.loads(worker.current.read_text() or "{}")
        lines = worker.part.read_text().splitlines() if worker.part.exists() else []
        if line and not any(json.loads(old).get("hash") == line["hash"] for old in lines[-2:]):
            with worker.part.open("a") as out:
                out.write(json.dumps({**line, "verdict": verdict.value, "reason": reason}) + "\n")

    def _merge(self) -> dict[str, dict[str, int]]:
        """Merge every problem's lines into one file: about, designs, kernels. Return the verdicts of each problem."""
        counts: dict[str, dict[str, int]] = {}
        for name in self.options.problems:
            lines = [*self.old.get(name, []), *self._written(name)]
            seen: set[str] = set()
            kept: dict[str, list[str]] = {"about": [], "design": [], "kernel": [], "again": []}
            counts[name] = {}
            for text in lines:
                line = json.loads(text)
                key = f"{line['line']} {line.get('hash') or line.get('family')} {line.get('session', '')}"
                if key in seen:
                    continue
                seen.add(key)
                kept[line["line"]].append(text)
                if line["line"] == "kernel":
                    counts[name][line["verdict"]] = counts[name].get(line["verdict"], 0) + 1
            if kept["kernel"]:
                text = "\n".join(text for group in kept.values() for text in group) + "\n"
                (self.options.output / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        logs = self.options.output / "workers.log"
        logs.write_text("".join(f"== {p.name}\n{p.read_text(errors='replace')[-3000:]}\n" for p in self._logs()))
        return counts

    def _written(self, name: str) -> Iterator[str]:
        for path in sorted(self.folder.glob(f"{name}.*.jsonl")):
            for text in path.read_text().splitlines():
                if text.endswith("}"):  # the last line may be half written
                    yield text

    def _logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))


if __name__ == "__main__":
    raise SystemExit(main())
