"""A first look on a GPU at what the synthesiser proposes first: right or not, and how fast, a line for each.

    python -m bench.anchors.look [--proposals 6] [--budget-s 220] [--workers 6] [--problem FILE ...] [--workloads 2]

Every Candidate is compared with the reference in float64. Several processes compile and compare at once; when all are
ready, one after the other times its models, and nothing else uses the GPU meanwhile. Times are cold (see clock.py).
The baselines are eager and torch.compile in its default mode and in max-autotune-no-cudagraphs. What does not fit the
budget is named.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bench.anchors.clock import Replay, Rotation
from bench.synthesis import module_from_file
from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis import checking

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "bench" / "anchors" / "problems"
EXAMPLES = ROOT / "examples" / "problems"
FIRST = ("decode_attention", "cross_entropy", "rope", "bias_gelu", "gated_mlp", "rmsnorm_linear")
MODES = {"eager": "", "compile": "default", "autotuned": "max-autotune-no-cudagraphs"}
READY = "ready"
TIMING_S = 4.0  # kept for each problem's turn


def default_problems() -> list[Path]:
    return [*sorted(OWN.glob("*.py")), *(EXAMPLES / f"{name}.py" for name in FIRST)]


def say(*parts: object) -> None:
    print(*parts, flush=True)


# ---- one problem, in a process of its own


@dataclass
class Prepared:
    """A workload's models, captured, with a note for each."""

    title: str
    rotation: Rotation
    replays: dict[str, Replay] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def look(path: Path, options: argparse.Namespace) -> None:
    """Prepare the first Candidates of a problem on its first workloads, await the turn, then print their times."""
    checking.module = module_from_file
    source = path.read_text(encoding="utf-8")
    held = held_out(source)
    shown = [w for w in checking.sizes_of(source, "cuda") if w["name"] not in held]
    drafts = []
    for draft in sequence(checking.graphs(source, shown), DeviceKind.CUDA, 0):
        drafts.append(draft)
        if len(drafts) == options.proposals:
            break
    prepared = []
    for workload in shown[: options.workloads]:
        prepared += prepare(path.stem, source, workload, drafts, options)
    say(READY)
    sys.stdin.readline()
    for one in prepared:
        report(one)


def prepare(
    name: str, source: str, workload: dict[str, Any], drafts: list[Draft], options: argparse.Namespace
) -> Iterator[Prepared]:
    sizes = {k: v for k, v in workload.items() if k != "name"}
    title = f"{name:17s} {workload['name']:10s}"
    made: Prepared | None = None
    for number, draft in enumerate(drafts):
        note = f"{draft.strategy} " + " ".join(f"{k}={v}" for k, v in draft.configuration.items())
        if time.time() > options.until:
            say(f"{title} {number} no time left: {note}")
            continue
        try:
            pair = checking.Pair(source, draft.source, sizes, device="cuda")
            with torch.no_grad():
                if made is None:
                    made = Prepared(title, Rotation(pair.model, pair.inputs))
                    baselines(made, pair.model, options)
                verdict = right(pair)
                made.replays[str(number)] = made.rotation.capture(pair.candidate, pair.candidate)
                made.notes[str(number)] = f"{verdict:5s} {note}"
        except Exception as error:
            say(f"{title} {number} ERROR {type(error).__name__}: {str(error)[:600]} | {note}")
            if "CUDA" in str(error) and "error" in str(error):
                raise
    if made is not None:
        yield made


def right(pair: checking.Pair) -> str:
    try:
        pair.check()
    except AssertionError as error:
        return f"WRONG({str(error)[:120]})"
    return "right"


def baselines(made: Prepared, model: torch.nn.Module, options: argparse.Namespace) -> None:
    for name, mode in MODES.items():
        if name in options.baselines and time.time() < options.until:
            torch._dynamo.reset()
            call = torch.compile(model, mode=mode, dynamic=False) if mode else model
            made.replays[name] = made.rotation.capture(model, call)


def report(made: Prepared) -> None:
    """Print a line for the baselines and one for each Candidate: median, least, and speedup by medians."""
    times = made.rotation.times_us(made.replays)
    base = {name: times.pop(name) for name in MODES if name in times}
    listed = " ".join(f"{name} {median:.2f}" for name, (median, _) in base.items())
    say(f"{made.title} - baselines us: {listed} ({made.rotation.count} sets)")
    best = min((median for median, _ in base.values()), default=float("nan"))
    for name, (median, least) in times.items():
        say(f"{made.title} {name} {median:9.2f} us (least {least:.2f}) {best / median:6.2f}x {made.notes[name]}")


def held_out(source: str) -> set[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOADS":
            return {e["name"] for e in ast.literal_eval(node.value) if e.get("held_out")}
    return set()


# ---- all problems


@dataclass
class Child:
    """The process of one problem."""

    path: Path
    process: subprocess.Popen[str]
    ready: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def follow(self) -> None:
        """Pass on what it prints until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == READY:
                self.ready.set()
            else:
                say(line.rstrip())
        if self.process.wait():
            say(f"{self.path.stem}: ended with {self.process.returncode}; {self.errors()}")
        self.ready.set()
        self.ended.set()

    def errors(self) -> str:
        log = self.log(self.path)
        return log.read_text(encoding="utf-8")[-1500:] if log.exists() else ""

    @staticmethod
    def log(path: Path) -> Path:
        return Path(f"/tmp/look-{path.stem}.log")


def start(path: Path, options: argparse.Namespace) -> Child:
    numbers = [f"--proposals={options.proposals}", f"--workloads={options.workloads}", f"--until={options.until}"]
    command = [sys.executable, "-m", "bench.anchors.look", *numbers, "--child", str(path)]
    command += ["--baselines", *options.baselines]
    with Child.log(path).open("w") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    child = Child(path, process)
    threading.Thread(target=child.follow).start()
    return child


def run_all(paths: list[Path], options: argparse.Namespace) -> None:
    """Prepare all problems, `workers` at once; stop who is late; then let each have the GPU for itself."""
    children: list[Child] = []
    for path in paths:
        while sum(not c.ready.is_set() for c in children) >= options.workers and time.time() < options.until:
            time.sleep(0.1)  # processes of several kinds of events: a poll is simplest
        if time.time() > options.until:
            say(f"{path.stem}: no time left")
            continue
        children.append(start(path, options))
    for child in children:
        if not child.ready.wait(max(0.0, options.until + 20 - time.time())):
            say(f"{child.path.stem}: not ready in time")
            child.process.kill()
            child.ended.wait()
    for child in children:
        if child.ended.is_set():
            continue
        assert child.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            child.process.stdin.write("go\n")
            child.process.stdin.flush()
        if not child.ended.wait(60):
            child.process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proposals", type=int, default=6)
    parser.add_argument("--workloads", type=int, default=2, help="of each problem")
    parser.add_argument("--baselines", nargs="*", choices=[*MODES], default=[*MODES])
    parser.add_argument("--budget-s", type=float, default=220)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--problem", type=Path, nargs="*")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        look(options.child, options)
        return
    paths = options.problem or default_problems()
    options.until = time.time() + options.budget_s - 20 - TIMING_S * len(paths)
    run_all(paths, options)


if __name__ == "__main__":
    main()
