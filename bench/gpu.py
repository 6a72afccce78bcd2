"""Everything that needs an NVIDIA GPU, by one command: `python -m bench.gpu [--budget-s 1500] [--only NAME ...]`.

What is shown first runs first: a whole optimisation, then the tests, then the other benchmarks. A step that would not
fit into what is left of the budget is left out and said so; a step that fails does not stop the others. Each writes its
own file under bench/results/; with --output those files and each step's log are copied there, too (a rented GPU machine
usually hands back one folder). The long benchmarks go on where their files of results end, so that several short leases
do as well as one long one. --kernelbench CHECKOUT names a checkout of https://github.com/ScalingIntelligence/KernelBench
for the steps that need one; without it they are left out. QUICK=1 is passed on. Prints a line per step, and a summary.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True, slots=True)
class Step:
    """`usual_s` is what it takes on an H200; it is ended after `limit_s`."""

    name: str
    command: tuple[str, ...]
    usual_s: float
    limit_s: float


_CHECKOUT = "CHECKOUT"
_DEVICE = ("--device", "cuda:0")


def _resumed(name: str, *more: str, budget_s: float) -> Step:
    """A benchmark that ends by itself after its budget, and goes on where its results end."""
    command = (f"bench.{more[0]}", *more[1:], *_DEVICE, "--budget-s", f"{budget_s:g}", "--resume")
    return Step(name, command, usual_s=budget_s + 30, limit_s=budget_s + 90)


_PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")
_ADVERSARIAL = "tests/gpu/test_gpu_adversarial.py"
STEPS = (
    Step(
        "optimize",
        ("bench.optimize", "--device", "cuda:0", "--problem", "rmsnorm_residual", "--seconds", "120"),
        usual_s=400,
        limit_s=580,
    ),
    Step("tests", (*_PYTEST, "--ignore", _ADVERSARIAL, "tests/gpu"), usual_s=210, limit_s=540),
    Step("judge_gpu", ("bench.judge_gpu",), usual_s=120, limit_s=400),
    Step("adversarial", (*_PYTEST, _ADVERSARIAL), usual_s=600, limit_s=1200),
    Step(
        "synthesis", ("bench.synthesis", "--device", "cuda", "--output", "bench/results/synthesis-cuda.json"), 300, 540
    ),
    _resumed("aa", "judge", "aa", "--confirms", "30", budget_s=400),
    _resumed("power", "judge", "power", "--confirms", "10", budget_s=400),
    _resumed("mutation", "mutation", "--repeats", "20", budget_s=450),
    _resumed("soak", "soak", "--count", "200", budget_s=400),
    _resumed("rate", "rate", _CHECKOUT, budget_s=480),
    _resumed("rate_inline", "rate", _CHECKOUT, "--load-inline", budget_s=480),
    _resumed("kernelbench", "kernelbench", _CHECKOUT, "--sample", "60", budget_s=480),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step went. `last` is the last line that it printed."""

    step: Step
    exit_code: int
    wall_s: float
    last: str


def run(step: Step, logs: Path, checkout: Path | None) -> Outcome:
    """One step as a process of its own; its output goes to NAME.log. A step that is out of time ends with 124."""
    command = [str(checkout) if word == _CHECKOUT else word for word in step.command]
    start = time.monotonic()
    log = logs / f"{step.name}.log"
    with log.open("w", encoding="utf-8") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, stdout=sink, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            code = process.wait(step.limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
            code = 124
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return Outcome(step, code, time.monotonic() - start, lines[-1][:160] if lines else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget-s", type=float, default=1500.0, help="seconds for all of it")
    parser.add_argument("--only", nargs="+", choices=[step.name for step in STEPS], help="these steps alone")
    parser.add_argument("--kernelbench", type=Path, metavar="CHECKOUT", help="for the steps that read KernelBench")
    parser.add_argument("--output", type=Path, help="a folder for copies of results and logs")
    options = parser.parse_args()
    logs = options.output or Path(tempfile.mkdtemp(prefix="warpwright-gpu-"))
    logs.mkdir(parents=True, exist_ok=True)
    started, outcomes = time.time(), []
    for step in (s for s in STEPS if options.only is None or s.name in options.only):
        if _CHECKOUT in step.command and options.kernelbench is None:
            print(f"{step.name:12} left out: it needs --kernelbench CHECKOUT", flush=True)
            continue
        left_s = options.budget_s - (time.time() - started)
        if step.usual_s > left_s:
            print(f"{step.name:12} left out: {left_s:.0f} s are left, it usually takes {step.usual_s:g}", flush=True)
            continue
        outcomes.append(run(step, logs, options.kernelbench))
        one = outcomes[-1]
        print(f"{step.name:12} exit {one.exit_code:3} in {one.wall_s:6.1f} s: {one.last}", flush=True)
        if options.output:
            for path in RESULTS.glob("*.json*"):
                if path.stat().st_mtime >= started:
                    shutil.copy2(path, options.output)
    failed = [one.step.name for one in outcomes if one.exit_code]
    print(f"gpu: {len(outcomes)} of {len(STEPS)} steps run, failed: {', '.join(failed) or 'none'}; logs in {logs}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
