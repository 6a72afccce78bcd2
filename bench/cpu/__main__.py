"""Time the synthesiser's Candidates on a CPU beside eager and torch.compile (max-autotune too), example by example.

    python -m bench.cpu [--threads 1 2] [--problem NAME|FILE ...] [--drafts 12] [--rounds 41] [--no-judge]
        [--budget-s 3000] [--label TEXT] [--resume] [--output FILE]

Each row is a problem with a number of threads, in a process of its own on the last cores. The Candidate is one draft:
the fastest over all Workloads in a brief look at the first ones. It and the Baselines then alternate round by round;
ratios are of pairs, with 95 % intervals. Then a judge times that Candidate against the mode that was fastest on each
Workload, by its own clock and with its checks (`judged`); without --no-judge that is the figure that counts. Times of
one thread are those on its processor, so that other programs do not lengthen them; those of several are wall time.

A line a row as it ends, also as JSON lines in --output (bench/results/examples-cpu.jsonl), after a line about the
machine; `load` is what else the machine did before and after. --resume leaves out the rows of the same label that the
file has, and prints the figures of all. No row starts after --budget-s. QUICK=1: one problem, few rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.cpu.figures import figures, line
from bench.cpu.judged import judged

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "problems"
MODES = ("eager", "compile", "max-autotune-no-cudagraphs")
QUICK = os.environ.get("QUICK") == "1"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench.cpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    made.add_argument("--problem", nargs="*", default=["swiglu"] if QUICK else [])
    made.add_argument("--drafts", type=int, default=4 if QUICK else 12)
    made.add_argument("--rounds", type=int, default=9 if QUICK else 41)
    made.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    made.add_argument("--no-judge", action="store_true")
    made.add_argument("--limit-s", type=float, default=240.0, help="of one row's process")
    made.add_argument("--budget-s", type=float, default=3000.0)
    made.add_argument("--label", default="")
    made.add_argument("--resume", action="store_true")
    made.add_argument("--output", type=Path, default=ROOT / "bench" / "results" / "examples-cpu.jsonl")
    return made


def chosen(names: list[str]) -> list[Path]:
    """Return the problem files: examples by name, others by path; all examples by default."""
    if not names:
        return sorted(EXAMPLES.glob("*.py"))
    return [Path(name) if name.endswith(".py") else EXAMPLES / f"{name}.py" for name in names]


def row_of(path: Path, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return one row, measured in a process of its own."""
    before = os.getloadavg()[0]
    command = [sys.executable, "-m", "bench.cpu.looks", str(path), str(threads), str(options.drafts)]
    command += [str(options.rounds), ",".join(options.modes)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=options.limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"problem": path.stem, "threads": threads, "error": f"not done after {options.limit_s:g} s"}
    if done.returncode:
        return {"problem": path.stem, "threads": threads, "error": done.stderr.strip()[-500:]}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "source" in row and not options.no_judge:
        row["judged"] = judged(path, row, options.limit_s)
    return row | {"load": [round(before, 2), round(os.getloadavg()[0], 2)], "label": options.label}


def main() -> int:
    options = parser().parse_args()
    start, rows = time.monotonic(), []
    if options.resume and options.output.exists():
        known = [json.loads(text) for text in options.output.read_text(encoding="utf-8").splitlines()]
        rows = [row for row in known if "problem" in row and row.get("label", "") == options.label]
    done = {(row["problem"], row["threads"]) for row in rows if "error" not in row}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a" if options.resume else "w", encoding="utf-8") as sink:
        sink.write(json.dumps({"about": machine.describe(), "label": options.label}) + "\n")
        for threads in options.threads:
            for path in chosen(options.problem):
                if (path.stem, threads) in done or time.monotonic() - start > options.budget_s:
                    continue
                row = row_of(path, threads, options)
                rows.append(row)
                kept = {key: value for key, value in row.items() if key != "source"}
                sink.write(json.dumps(kept) + "\n")
                sink.flush()
                print(line(row), flush=True)
    print(figures(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
