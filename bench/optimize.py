"""Run `warpwright optimize` on example problems for a given time, over the whole real path.

    python -m bench.optimize [--device cpu|cuda:0] [--seconds 120] [--problem NAME ...] [--output FILE]

Each problem gets a data folder of its own, so nothing is known beforehand. Figures are those of the confirming session
(see docs/guide/judge.md), against the fastest baseline and against eager. A problem without a champion is a row too.
The file of each champion is then run with `--check` in a process of its own. QUICK=1: one problem, 60 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SLACK_S = 420.0
"""For admission, baselines and what is in flight at the end; none of these is charged to the search."""


def optimise(problem: Path, device: str, seconds: float, folder: Path) -> dict[str, Any]:
    """Run one optimisation from nothing, and return its end as a row."""
    best = folder / f"{problem.stem}.py"
    command = [
        sys.executable,
        "-m",
        "warpwright",
        "optimize",
        str(problem),
        "--device",
        device,
        "--seconds",
        f"{seconds:g}",
    ]
    done = subprocess.run(
        [*command, "--json", "--data", str(folder / problem.stem), "-o", str(best)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=seconds + SLACK_S, check=False,
    )  # fmt: skip
    if not done.stdout.strip():
        return {"problem": problem.stem, "exit_code": done.returncode, "error": "see what it printed"}
    found = json.loads(done.stdout)
    evaluation = found["evaluation"] or {}
    run = found["run"]
    return {
        "problem": problem.stem,
        "exit_code": done.returncode,
        "run_id": run["id"],
        "end_reason": run["end_reason"],
        "message": run["message"],
        "champion": found["improved"],
        "language": (found["candidate"] or {}).get("language"),
        "proposer": (found["candidate"] or {}).get("proposer"),
        "candidates_by_verdict": found["candidates_by_verdict"],
        "seconds_by_stage": found["seconds_by_stage"],
        "stage": evaluation.get("stage"),
        "speedups": evaluation.get("speedups"),
        "confirm": (evaluation.get("evidence") or {}).get("confirm"),
        "workloads": [_workload(item) for item in evaluation.get("measurements") or ()],
        "device": evaluation.get("device"),
        "environment": evaluation.get("environment"),
        "isolation": evaluation.get("isolation"),
        "check": _check(best) if best.is_file() else None,
    }


def _workload(item: dict[str, Any]) -> dict[str, Any]:
    baselines = {b["mode"]: b["median_us"] for b in item["baselines"]}
    kept = {key: item[key] for key in ("workload", "clock", "median_us", "interval_us", "floor_us")}
    return {**kept, "baselines_us": baselines}


def _check(best: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(best), "--check"], capture_output=True, text=True, timeout=300, check=False
    )
    return {"exit_code": done.returncode, "last_line": (done.stdout.strip().splitlines() or [""])[-1]}


def line(row: dict[str, Any]) -> str:
    """Format a row for people."""
    ratio = next((r for r in row.get("speedups") or () if r["against"] == "fastest" and r["workload"] is None), None)
    if ratio is None:
        return f"{row['problem']:20} no figure: {row.get('message') or row.get('error', '')[-200:]}"
    word = "champion" if row["champion"] else "not confirmed"
    low, high = ratio["interval"]["low"], ratio["interval"]["high"]
    gain = f"{ratio['value']:.3f}x the fastest baseline ({low:.3f} to {high:.3f})"
    return f"{row['problem']:20} {gain}, {word}, {row['language']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    quick = os.environ.get("QUICK") == "1"
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=60.0 if quick else 120.0)
    parser.add_argument("--problem", action="append", help="a name in examples/problems; may be given several times")
    parser.add_argument("--output", type=Path, help="default: bench/results/optimize-DEVICE.json")
    options = parser.parse_args()
    every = sorted((ROOT / "examples" / "problems").glob("*.py"))
    wanted = options.problem or (["rmsnorm_residual"] if quick else [path.stem for path in every])
    rows = []
    with tempfile.TemporaryDirectory(prefix="warpwright-bench-") as folder:
        for problem in (path for path in every if path.stem in wanted):
            rows.append(optimise(problem, options.device, options.seconds, Path(folder)))
            print(line(rows[-1]), flush=True)
    name = options.device.partition(":")[0]
    output = options.output or ROOT / "bench" / "results" / f"optimize-{name}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "command": f"python -m bench.optimize --device {options.device} --seconds {options.seconds:g}",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "rows": rows,
    }
    output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    champions = sum(1 for row in rows if row.get("champion"))
    print(f"optimize: {champions} champions of {len(rows)} problems on {options.device}, {options.seconds:g} s each")
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
