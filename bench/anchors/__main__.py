"""Time ours beside eager, torch.compile, library calls, Liger-Kernel and Helion, a row at a time, on one GPU.

    python -m bench.anchors [--row NAME ...] [--budget-s 500] [--shard I/N] [--resume] [--output FILE]
        [--workers 14] [--plans 24] [--neighbours 24] [--modes compile autotuned] [--helion CHECKOUT]

The rows are the op rows of an H200's record of baselines, fused quantisation, and a few more (bench/anchors/rows.py;
--row takes beginnings of their names). Each row is a process: it compiles beside others, and measures alone. Times are
cold: a CUDA graph over rotating copies of inputs and weights, contenders in turn and in another order each round.
Ratios are medians of paired rounds with 95 % intervals. Every contender is compared with float64 first. Ours is the
fastest right one of the synthesiser's first plans and of neighbours of the fastest, looked at briefly; without a plan
of ours, or where it is slower, the answer is the fastest baseline.

A line a row as it ends, the figures last, also as JSON lines in --output (bench/results/anchors-DEVICE.jsonl), after a
line about the machine. --resume leaves out the rows that the file has. No process outlives the budget or its deadline.
--helion names a checkout of https://github.com/pytorch/helion for its kernels tuned ahead. QUICK=1: three rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.anchors.children import Limits, Pool, row_command
from bench.anchors.figures import figures, figures_line, line
from bench.anchors.rows import chosen

RESULTS = Path(__file__).resolve().parents[1] / "results"
QUICK = os.environ.get("QUICK") == "1"
QUICK_ROWS = ["rows/softmax_4096x4096", "rows/layernorm_4096x4096", "quantised/per_token"]
CHILD_OPTIONS = (
    "device", "helion", "look_s", "mode_s", "modes", "neighbours", "neighbours_s", "no_tuning", "plans", "plans_s",
    "quick", "rounds_s", "slower_memory",
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench.anchors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--row", nargs="*", default=QUICK_ROWS if QUICK else [])
    made.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    made.add_argument("--budget-s", type=float, default=500.0)
    made.add_argument("--shard", default="1/1", metavar="I/N")
    made.add_argument("--resume", action="store_true")
    made.add_argument("--output", type=Path)
    made.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    made.add_argument("--plans", type=int, default=24, help="first plans of the synthesiser")
    made.add_argument("--neighbours", type=int, default=24, help="Configurations near the fastest of them")
    made.add_argument("--no-tuning", action="store_true", help="take the first plans as they are")
    made.add_argument(
        "--modes", nargs="*", choices=["compile", "autotuned", "reduced"], default=["compile", "autotuned"]
    )
    made.add_argument("--helion", type=Path, metavar="CHECKOUT")
    made.add_argument("--mode-s", type=float, default=80.0, help="to compile a baseline")
    made.add_argument("--plans-s", type=float, default=40.0, help="to compile the first plans")
    made.add_argument("--neighbours-s", type=float, default=20.0, help="to compile neighbours")
    made.add_argument("--look-s", type=float, default=8.0, help="of the device, for brief looks; twice")
    made.add_argument("--rounds-s", type=float, default=2.0, help="of the device, for the rounds")
    made.add_argument("--slower-memory", type=float, default=1.0, help="an H200's memory rate over this card's")
    made.add_argument("--logs", type=Path, default=Path(tempfile.gettempdir()) / "anchors-logs")
    return made


def known_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows that a file of results has, the last one of each name."""
    found: dict[str, dict[str, Any]] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        entry = json.loads(text)
        if "row" in entry and "error_of_row" not in entry:
            found[entry["row"]] = entry
    return list(found.values())


def child_options(options: argparse.Namespace) -> str:
    """Return what a row's process needs to know."""
    found = {name: getattr(options, name, None) for name in CHILD_OPTIONS} | {"quick": QUICK}
    return json.dumps(found | {"helion": str(options.helion.resolve()) if options.helion else None})


def main() -> int:
    options = parser().parse_args()
    about = machine.describe()
    if options.device == "cuda" and not about["gpus"]:
        raise SystemExit("no NVIDIA GPU here; --device cpu times calls of tiny inputs (QUICK=1), to test the bench")
    until = time.monotonic() + options.budget_s
    path = options.output or RESULTS / f"anchors-{options.device}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    options.logs.mkdir(parents=True, exist_ok=True)
    rows = known_rows(path) if options.resume else []
    done = {row["row"] for row in rows}
    wanted = [row for row in chosen(options.row, options.shard) if row.name not in done]
    with path.open("a" if options.resume else "w", encoding="utf-8") as file:

        def write(entry: dict[str, Any]) -> None:
            file.write(json.dumps(entry) + "\n")
            file.flush()

        def tell(row: dict[str, Any]) -> None:
            print(line(row), flush=True)
            rows.append(row)
            write(row)

        write({"about": {**about, "slower_memory": options.slower_memory, "shard": options.shard}})
        given = child_options(options)
        pool = Pool(lambda row, skip: row_command(row, given, skip), options.logs, options.workers, until, Limits())
        pool.run(wanted, tell)
        found = figures(rows)
        write({"figures": found})
    left = [row.name for row in wanted if row.name not in {r["row"] for r in rows}]
    if left:
        print(f"no time left for: {', '.join(left)} (--resume goes on)")
    print(figures_line(found))
    return int(bool(found["failed"]))


if __name__ == "__main__":
    sys.exit(main())
