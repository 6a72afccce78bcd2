"""Import KernelBench's references at smaller sizes, and judge the synthesiser's first kernels of each.

    python -m bench.kernelbench_judged CHECKOUT [--counts 20 10] [--kernels 2] [--most-mib 4] [--whole] [--resume]

CHECKOUT is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT); only the names of its files are
copied into a result. `--counts` says how many references of level 1, 2, 3 are drawn by `--seed`. Each is imported as
`warpwright import` does, sizes are halved until inputs, parameters and outputs take `--most-mib` together, and it is
admitted. The first `--kernels` of the synthesiser, or the reference's own code where it has none, are judged against
eager PyTorch in paired rounds, as KernelBench counts; with --whole against the fastest of eager and every mode of
torch.compile. Nothing is confirmed: a ratio is that of one judging. Append a JSON line per reference to
bench/results/kernelbench-judged-DEVICE.jsonl. QUICK=1: one reference of each level.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.kernelbench import Judges, parser, read_rows, select_references  # noqa: E402
from bench.one_shape import reduced  # noqa: E402
from evaluator.errors import ProblemError  # noqa: E402
from evaluator.languages import detect  # noqa: E402
from evaluator.problem import read_problem  # noqa: E402
from evaluator.types import Candidate, DeviceKind, Problem  # noqa: E402
from synthesis.errors import SynthesisError  # noqa: E402
from synthesis.graph import trace  # noqa: E402
from synthesis.graph.aten import read_reply  # noqa: E402
from synthesis.strategies import sequence  # noqa: E402
from warpwright.errors import BadUsage  # noqa: E402
from warpwright.formats import import_one  # noqa: E402

OWN = "the reference's own code"


def try_reference(path: Path, judges: Judges, options: argparse.Namespace) -> dict[str, Any]:
    """Return one reference's row: `outcome` is judged, not admitted, not imported or too slow."""
    row: dict[str, Any] = {"reference": f"{path.parent.name}/{path.stem}"}
    start = time.monotonic()
    try:
        made = import_one(str(path))
        source, name = (made.source, made.name) if made is not None else (path.read_text("utf-8"), path.stem)
        problem = reduced(read_problem(source, name), options.most_mib)
    except (BadUsage, ProblemError) as error:
        return {**row, "outcome": "not imported", "reason": str(error)}
    row["sizes"] = dict(problem.workloads[0].sizes)
    row |= _judged(problem, judges, options)
    return {**row, "took_s": round(time.monotonic() - start, 1)}


def _judged(problem: Problem, judges: Judges, options: argparse.Namespace) -> dict[str, Any]:
    admission = judges.ask("admit", options.limit_s, problem=problem)
    if admission is None or admission["verdict"] != "PASSED":
        reason = f"not admitted after {options.limit_s:g} s" if admission is None else admission["reason"]
        return {"outcome": "not admitted", "reason": reason}
    kernels = _kernels(problem, DeviceKind(options.device.partition(":")[0]), options.kernels)
    baseline = judges.ask("baseline", options.limit_s, problem=problem, whole=options.whole)
    if baseline is None or "verdict" in baseline:
        return {"outcome": "too slow", "reason": f"no baselines after {options.limit_s:g} s"}
    rows = []
    for strategy, source in kernels:
        what = Candidate(source=source, language=detect(source), proposer="bench")
        found = judges.ask("judge", options.limit_s, problem=problem, candidate=what, baseline=baseline)
        rows.append({"kernel": strategy, **_verdict(found, options.limit_s)})
    best = max(rows, key=lambda one: (one["verdict"] == "PASSED", one.get("ratio", 0.0)))
    return {"outcome": "judged", "verdict": best["verdict"], "reason": best["reason"], "kernels": rows}


def _kernels(problem: Problem, kind: DeviceKind, most: int) -> list[tuple[str, str]]:
    """Return the names and sources of the synthesiser's first kernels; the reference's own code where it has none."""
    [work] = problem.workloads
    request = {"source": problem.source, "workloads": [{"name": work.name, "sizes": dict(work.sizes)}], "probes": []}
    try:
        graphs = read_reply(json.dumps(trace.reply({**request, "train": problem.train})), problem.source)
        found = [(one.strategy, one.source) for one in itertools.islice(sequence(graphs, kind, 0), most)]
    except SynthesisError:
        found = []
    return found or [(OWN, problem.source + "\n\nclass ModelNew(Model):\n    pass\n")]


def _verdict(found: Mapping[str, Any] | None, limit_s: float) -> dict[str, Any]:
    if found is None:
        return {"verdict": "too slow", "reason": f"not through after {limit_s:g} s"}
    row: dict[str, Any] = {"verdict": found["verdict"], "reason": found["reason"][:300]}
    for one in found.get("speedups", ()):
        if one["against"] == "fastest" and one["workload"] is None:
            interval = [round(one["interval"][end], 4) for end in ("low", "high")]
            row |= {"ratio": round(one["value"], 4), "interval": interval}
    return row


def drawn(options: argparse.Namespace) -> list[Path]:
    """Return so many references of each level as `--counts` says, drawn by the seed, in the order of their names."""
    chosen: list[Path] = []
    for level, count in enumerate(options.counts, start=1):
        options.level, options.sample = [level], 0
        every = select_references(options)
        picked = set(random.Random(options.seed).sample(every, min(count, len(every))))
        chosen += [path for path in every if path in picked]
    return chosen


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the counts in words."""
    outcomes = Counter(row["outcome"] for row in rows)
    judged = [row for row in rows if row["outcome"] == "judged"]
    kernels = Counter(kernel["verdict"] for row in judged for kernel in row["kernels"])
    ours = [row for row in judged if row["kernels"][0]["kernel"] != OWN]
    faster = sum(any(kernel.get("interval", (0.0, 0.0))[0] > 1 for kernel in row["kernels"]) for row in ours)
    words = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in kernels.most_common())
    return (
        f"kernelbench_judged: {len(rows)} references: {words}; kernels: {verdicts or 'none'}; "
        f"the synthesiser has kernels of {len(ours)}, whose intervals lie above 1 in {faster}"
    )


def main() -> int:
    known = parser(__doc__)
    known.add_argument("--counts", type=int, nargs="+", default=[1, 1] if os.environ.get("QUICK") == "1" else [20, 10])
    known.add_argument("--kernels", type=int, default=2)
    known.add_argument("--most-mib", type=float, default=4.0)
    known.add_argument("--whole", action="store_true")
    options = known.parse_args()
    references = drawn(options)
    if not references:
        print(f"there is no KernelBench/level*/*.py below {options.checkout}", file=sys.stderr)
        return 2
    kind = options.device.partition(":")[0]
    output = options.output or ROOT / "bench" / "results" / f"kernelbench-judged-{kind}.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(output) if options.resume else {}
    judges = Judges(options.device, Path(os.devnull))
    start = time.monotonic()
    try:
        with output.open("a" if options.resume else "w", encoding="utf-8") as sink:
            if not rows:
                about: dict[str, Any] = {
                    "about": judges.describe(),
                    "limit_s": options.limit_s,
                    "most_mib": options.most_mib,
                }
                about["against"] = "the fastest baseline" if options.whole else "eager"
                sink.write(json.dumps(about) + "\n")
            for path in references:
                name = f"{path.parent.name}/{path.stem}"
                if name in rows or time.monotonic() - start > options.budget_s:
                    continue
                rows[name] = try_reference(path, judges, options)
                sink.write(json.dumps(rows[name]) + "\n")
                sink.flush()
                print(f"{name:50} {rows[name]['outcome']:12} {rows[name]['reason'][:100]}", flush=True)
    finally:
        judges.close()
    print(summary(list(rows.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
