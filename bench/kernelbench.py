"""Try KernelBench's references as Problems: which are accepted, which are refused, and why.

    python -m bench.kernelbench CHECKOUT [--device cpu|cuda:0] [--sample 60] [--level 1 ...] [--limit-s 60] [--resume]

CHECKOUT is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT); only the names of its files are
copied into a result. A reference is read, then admitted by a judge as any Problem is: loaded and run in a cage, its
oracle made, null solutions tried. One that is not done after --limit-s is ended and listed as too slow. Append a JSON
line per reference to bench/results/kernelbench-DEVICE.jsonl; with --resume existing lines are kept. --sample takes that
many by --seed; --shard I/N every N-th from the I-th; --budget-s ends all. QUICK=1: 12 references.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.shards import of_shard  # noqa: E402
from evaluator.errors import ProblemError  # noqa: E402
from evaluator.problem import read_problem  # noqa: E402
from tests.gpu.judging import Judge  # noqa: E402

LEVELS = ("level1", "level2", "level3")
START_S = 120.0


class Judges:
    """A judge that is restarted after it was ended for a reference that took too long."""

    def __init__(self, device: str, log: Path) -> None:
        self._device, self._log = device, log
        self._judge: Judge | None = None

    def describe(self) -> Any:
        return self._one().ask("describe", timeout_s=START_S)

    def admit(self, problem: Any, limit_s: float) -> Any:
        """Return the Admission, or None if it took longer than the limit."""
        return self.ask("admit", limit_s, problem=problem)

    def ask(self, op: str, limit_s: float, **fields: Any) -> Any:
        """Return the answer of the judge, or None if it took longer than the limit."""
        judge, start = self._one(), time.monotonic()
        try:
            return judge.ask(op, timeout_s=limit_s, **fields)
        except RuntimeError as error:
            self.close()
            if time.monotonic() - start < 0.9 * limit_s:
                return {"verdict": "INTERNAL_ERROR", "reason": str(error)[:500]}
            return None

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    def _one(self) -> Judge:
        if self._judge is None:
            self._judge = Judge(self._device, self._log)
            self._judge.ask("describe", timeout_s=START_S)
        return self._judge


def classify(path: Path, judges: Judges, limit_s: float) -> dict[str, Any]:
    """Return one reference's row: `outcome` is accepted, refused, too slow, too large, unreadable or failed."""
    row: dict[str, Any] = {"reference": f"{path.parent.name}/{path.stem}"}
    start = time.monotonic()
    try:
        problem = read_problem(path.read_bytes(), path.stem)
    except ProblemError as error:
        return {**row, "outcome": "unreadable", "reason": str(error)}
    found = judges.admit(problem, limit_s)
    row["took_s"] = round(time.monotonic() - start, 2)
    if found is None:
        return {**row, "outcome": "too slow", "reason": f"not through after {limit_s:g} s on this device"}
    row["reason"] = found["reason"]
    if found["verdict"] == "PASSED":
        return {**row, "outcome": "accepted", "oracle": found["evidence"].get("oracle")}
    if found["verdict"] == "INTERNAL_ERROR":
        return {**row, "outcome": "failed"}
    large = "too much memory" in found["reason"]
    evidence = {key: found["evidence"][key] for key in ("null_solution",) if key in found["evidence"]}
    return {**row, "outcome": "too large" if large else "refused", **evidence}


def select_references(options: argparse.Namespace) -> list[Path]:
    """Return the selected references, in the order of their names."""
    base = options.checkout / "KernelBench"
    levels = [f"level{n}" for n in options.level] if options.level else list(LEVELS)
    every = [path for level in levels for path in sorted((base / level).glob("*.py"), key=_number)]
    if options.sample and options.sample < len(every):
        picked = set(random.Random(options.seed).sample(every, options.sample))
        every = [path for path in every if path in picked]
    return list(of_shard(every, options.shard or "1/1"))


def _number(path: Path) -> tuple[int, str]:
    head = path.stem.partition("_")[0]
    return (int(head) if head.isdigit() else 10**6, path.stem)


def parser(description: str | None = __doc__) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("checkout", type=Path)
    made.add_argument("--device", default="cpu")
    made.add_argument("--level", type=int, nargs="+", choices=(1, 2, 3))
    made.add_argument("--sample", type=int, default=12 if os.environ.get("QUICK") == "1" else 0)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--shard", help="I/N")
    made.add_argument("--limit-s", type=float, default=60.0)
    made.add_argument("--budget-s", type=float, default=float("inf"))
    made.add_argument("--resume", action="store_true")
    made.add_argument("--output", type=Path)
    return made


def main() -> int:
    options = parser().parse_args()
    references = select_references(options)
    if not references:
        print(f"there is no KernelBench/level*/*.py below {options.checkout}", file=sys.stderr)
        return 2
    output = options.output or ROOT / "bench" / "results" / f"kernelbench-{options.device.partition(':')[0]}.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    known = read_rows(output) if options.resume else {}
    judges = Judges(options.device, Path(os.devnull))
    start = time.monotonic()
    try:
        with output.open("a" if options.resume else "w", encoding="utf-8") as sink:
            if not known:
                sink.write(json.dumps({"about": judges.describe(), "limit_s": options.limit_s}) + "\n")
            for path in references:
                name = f"{path.parent.name}/{path.stem}"
                if name in known or time.monotonic() - start > options.budget_s:
                    continue
                known[name] = classify(path, judges, options.limit_s)
                sink.write(json.dumps(known[name]) + "\n")
                sink.flush()
                print(f"{name:60} {known[name]['outcome']:11} {known[name]['reason'][:100]}", flush=True)
    finally:
        judges.close()
    tally = Counter(row["outcome"] for row in known.values())
    words = ", ".join(f"{count} {outcome}" for outcome, count in tally.most_common())
    print(f"kernelbench: {sum(tally.values())} of {len(references)} references on {options.device}: {words}")
    return 0


def read_rows(output: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a record by their reference; none where there is no such file."""
    if not output.is_file():
        return {}
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return {row["reference"]: row for row in rows if "reference" in row}


if __name__ == "__main__":
    sys.exit(main())
