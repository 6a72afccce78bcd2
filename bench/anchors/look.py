"""A first look on a GPU at what the synthesiser proposes first: right or not, and how fast, a line for each.

    python -m bench.anchors.look [--proposals 6] [--budget-s 220] [--workers 4] [--problem FILE ...] [--workloads 2]

Times are cold: a CUDA graph with a read of 192 MB before each call, less one with these reads alone. The baseline is
torch.compile in mode max-autotune-no-cudagraphs. Several processes compile at once; one at a time uses the clock.
Every Candidate is compared with the reference in float64 first. Problems that do not fit the budget are named.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fcntl
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "bench" / "anchors" / "problems"
EXAMPLES = ROOT / "examples" / "problems"
FIRST = ("decode_attention", "cross_entropy", "rope", "bias_gelu", "gated_mlp", "rmsnorm_linear")
FLUSH_BYTES, CALLS, ROUNDS = 192 << 20, 12, 9


def default_problems() -> list[Path]:
    return [*sorted(OWN.glob("*.py")), *(EXAMPLES / f"{name}.py" for name in FIRST)]


class Clock:
    """Times calls on a cold cache, alone on the device."""

    def __init__(self, lock: Path) -> None:
        import torch

        self.torch, self.lock = torch, lock
        self.buffer = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self.flush_us = self._replay(lambda: None)

    def us(self, call: Callable[[], Any]) -> float:
        return self._replay(call) - self.flush_us

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self.lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _replay(self, call: Callable[[], Any]) -> float:
        """Return the median microseconds of one read of the buffer and one call."""
        torch = self.torch
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(2):
                call()
                self.buffer.sum()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                self.buffer.sum()
                call()
        samples = []
        with self.alone():
            for _ in range(ROUNDS):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                graph.replay()
                end.record()
                end.synchronize()
                samples.append(start.elapsed_time(end) * 1e3 / CALLS)
        return sorted(samples)[len(samples) // 2]


def say(*parts: object) -> None:
    print(*parts, flush=True)


def look(path: Path, proposals: int, count: int, until: float, lock: Path) -> None:
    """Print a line for each Candidate of one problem, on its first workloads."""
    import torch

    from bench.synthesis import module_from_file
    from evaluator.types import DeviceKind
    from synthesis.strategies import sequence
    from tests.synthesis import checking

    checking.module = module_from_file
    source = path.read_text(encoding="utf-8")
    held = _held_out(source)
    shown = [w for w in checking.sizes_of(source, "cuda") if w["name"] not in held]
    drafts = []
    for draft in sequence(checking.graphs(source, shown), DeviceKind.CUDA, 0):
        drafts.append(draft)
        if len(drafts) == proposals:
            break
    clock = Clock(lock)
    for workload in shown[:count]:
        if time.time() > until:
            say(f"{path.stem} {workload['name']}: no time left")
            continue
        sizes = {k: v for k, v in workload.items() if k != "name"}
        torch._dynamo.reset()
        base: dict[str, float] = {}
        for number, draft in enumerate(drafts):
            title = f"{path.stem:17s} {workload['name']:10s} {number}"
            what = f"{draft.strategy} {_short(draft.configuration)}"
            try:
                pair = checking.Pair(source, draft.source, sizes, device="cuda")
                with torch.no_grad():
                    if not base:
                        base = _baselines(pair, clock)
                        listed = " ".join(f"{k} {v:.1f}" for k, v in base.items())
                        say(f"{path.stem:17s} {workload['name']:10s} - baselines us: {listed}")
                    right = _right(pair)
                    us = clock.us(lambda p=pair: p.candidate(*p.inputs))
                say(f"{title} {right:5s} {us:9.2f} us {min(base.values()) / us:6.2f}x {what}")
            except Exception as error:
                text = traceback.format_exc().strip().splitlines()
                say(f"{title} ERROR {type(error).__name__}: {str(error)[:600]} | {text[-4:]} | {what}")
                if "CUDA" in str(error) and "error" in str(error):
                    raise


def _right(pair: Any) -> str:
    try:
        pair.check()
    except AssertionError as error:
        return f"WRONG({str(error)[:120]})"
    return "right"


def _baselines(pair: Any, clock: Clock) -> dict[str, float]:
    import torch

    found = {}
    for name, mode in (("eager", None), ("compile", "default"), ("autotuned", "max-autotune-no-cudagraphs")):
        torch._dynamo.reset()
        model = pair.model if mode is None else torch.compile(pair.model, mode=mode, dynamic=False)
        for _ in range(2):
            model(*pair.inputs)
        found[name] = clock.us(lambda m=model: m(*pair.inputs))  # type: ignore[misc]
    return found


def _held_out(source: str) -> set[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOADS":
            return {e["name"] for e in ast.literal_eval(node.value) if e.get("held_out")}
    return set()


def _short(configuration: Any) -> str:
    return " ".join(f"{k}={v}" for k, v in configuration.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proposals", type=int, default=6)
    parser.add_argument("--workloads", type=int, default=2, help="of each problem")
    parser.add_argument("--budget-s", type=float, default=220)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--problem", type=Path, nargs="*")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        look(Path(options.child[0]), options.proposals, options.workloads, *options.child[1:2], Path(options.child[2]))
        return
    until = time.time() + options.budget_s
    waiting: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in options.problem or default_problems():
        waiting.put(path)
    lock = Path(tempfile.mkdtemp()) / "clock"
    numbers = ["--proposals", str(options.proposals), "--workloads", str(options.workloads)]

    def work() -> None:
        while not waiting.empty():
            with contextlib.suppress(queue.Empty):
                path = waiting.get_nowait()
                if time.time() > until:
                    say(f"{path.stem}: no time left")
                    continue
                child = [sys.executable, "-m", "bench.anchors.look", *numbers]
                child += ["--child", json.dumps([str(path), until, str(lock)])]
                try:
                    done = subprocess.run(
                        child, cwd=ROOT, capture_output=True, text=True, timeout=until - time.time() + 40, check=False
                    )
                    out, failed = done.stdout, done.stderr[-1500:] if done.returncode else ""
                except subprocess.TimeoutExpired as late:
                    out, failed = str(late.stdout or ""), "timed out"
                say(out.rstrip() + (f"\n{path.stem}: {failed}" if failed else ""))

    threads = [threading.Thread(target=work) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
