"""Optimise KernelBench's references over the whole path, and let KernelBench itself judge the champions' files.

    python -m bench.kernelbench_champion CHECKOUT [--reference level1/18_Matmul_with_transposed_both ...] [--seconds 60]

CHECKOUT is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT). Each reference is optimised by
`warpwright optimize` at its own sizes, the champion is downloaded in KernelBench's form, and KernelBench's evaluation
runs that file in a process of its own: five comparisons, a hundred timed calls beside eager PyTorch. It makes float32
of every input, so it cannot run references with integer inputs, such as level1/95_CrossEntropyLoss.

Prints its verdict and ratio beside those of the confirmation. Append a JSON line per reference to
bench/results/kernelbench-champions.jsonl. A GPU is needed. QUICK=1: half the seconds.
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
sys.path.insert(0, str(ROOT))

from bench.optimize import optimise  # noqa: E402
from bench.rate.bench import run_kernelbench  # noqa: E402
from bench.rate.files import File  # noqa: E402

_LIMIT_S = 600.0


def judge_champion(checkout: Path, reference: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return one reference's row: our champion's ratios, and KernelBench's verdict and times of the same file."""
    path = checkout / "KernelBench" / f"{reference}.py"
    if not path.is_file():
        raise SystemExit(f"{path} does not exist: give a checkout of KernelBench, and references as level1/NAME")
    with tempfile.TemporaryDirectory(prefix="warpwright-bench-") as folder:
        found = optimise(path, options.device, options.seconds, Path(folder))
        row = {"reference": reference, **found}
        if found.get("champion"):
            kernel = _download(found["run_id"], Path(folder) / path.stem, options.device, Path(folder))
            row["kernelbench"] = _evaluate(path, kernel, Path(folder), options.device, row["language"] or "cuda")
    return row


def _download(run_id: str, data: Path, device: str, folder: Path) -> Path:
    """Return the champion's file in KernelBench's form."""
    unpacked = folder / "kernelbench"
    command = [sys.executable, "-m", "warpwright", "download", run_id, "--device", device, "--data", str(data)]
    subprocess.run(
        [*command, "--format", "kernelbench", "-o", str(unpacked)], cwd=ROOT, check=True, timeout=_LIMIT_S,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return next(unpacked.rglob("*.py"))


def _evaluate(reference: Path, kernel: Path, folder: Path, device: str, language: str) -> dict[str, Any]:
    backend = "triton" if language == "triton" else "cuda"
    texts = [one.read_text(encoding="utf-8") for one in (reference, kernel)]
    try:
        return run_kernelbench(File(reference.stem, *texts, backend, right=True), folder, device)
    except Exception as error:  # noqa: BLE001  of the reference, perhaps, and of any kind
        return {"passed": False, "outcome": f"{type(error).__name__}: {error}".splitlines()[0][:300]}


def line(row: dict[str, Any]) -> str:
    """Format a row for people."""
    theirs = row.get("kernelbench")
    ours = {r["against"]: r["value"] for r in row.get("speedups") or () if r["workload"] is None}
    if theirs is None:
        return f"{row['reference']}: no champion: {row.get('message') or row.get('error')}"
    told = ", ".join(f"{ratio:.2f}x {against}" for against, ratio in ours.items())
    verdict = "right" if theirs["passed"] else f"refused ({theirs['outcome']})"
    took = theirs.get("kernel_ms", -1.0)
    ratio = f"{theirs['reference_ms'] / took:.2f}x eager" if took > 0 else "no time"
    return f"{row['reference']}: confirmed at {told}; KernelBench finds it {verdict}, {ratio}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--reference", action="append", metavar="LEVEL/NAME")
    parser.add_argument("--seconds", type=float, default=30.0 if os.environ.get("QUICK") == "1" else 60.0)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results" / "kernelbench-champions.jsonl")
    options = parser.parse_args()
    sys.path.insert(0, str(options.checkout.resolve() / "src"))  # where KernelBench's process finds its package
    options.output.parent.mkdir(parents=True, exist_ok=True)
    references, agreed = options.reference or ["level1/18_Matmul_with_transposed_both"], 0
    for reference in references:
        row = judge_champion(options.checkout.resolve(), reference, options)
        row["measured_at"] = datetime.now(UTC).isoformat(timespec="seconds")
        agreed += bool(row.get("kernelbench", {}).get("passed"))
        with options.output.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps(row) + "\n")
        print(line(row), flush=True)
    print(f"kernelbench_champion: {agreed} of {len(references)} champions right by KernelBench's own evaluation")


if __name__ == "__main__":
    main()
