"""Write and compile the synthesiser's plans for references, for sm_90 and without a GPU: what is covered, what fails?

    python -m bench.coverage PATH [--level 1 ...] [--sample N] [--shard I/N] [--limit-s 120] [--budget-s S] [--resume]
        [--output FILE]

PATH is a checkout of https://github.com/ScalingIntelligence/KernelBench (MIT), or a folder of problem files. Each
reference is a process: it is traced on fake tensors at its own sizes, the first Draft of every strategy is written, and
what each launches is compiled for sm_90; grids and shared memory must be what a device accepts. Outcomes: `compiled`,
`library calls` (nothing to fuse, as said to users), `unsupported` (no plan, and why), `not traced`, `failed` (a plan
that does not compile). `calls` holds the operations that stay library calls in the first Draft. Append a JSON line per
reference to bench/results/coverage.jsonl; only names of references are copied. QUICK=1: 12 references.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.kernelbench import parser as kernelbench_parser  # noqa: E402
from bench.kernelbench import read_rows, select_references  # noqa: E402
from bench.shards import of_shard  # noqa: E402

MEMORY_BYTES = 10 << 30
GRID = (2**31 - 1, 65535, 65535)


def covered(path: Path) -> dict[str, Any]:
    """Trace, plan and compile one reference in this process."""
    from evaluator.types import DeviceKind  # noqa: PLC0415  torch and Triton: only in the child
    from synthesis.errors import SynthesisError, Unsupported  # noqa: PLC0415
    from synthesis.strategies import propose, sequence  # noqa: PLC0415
    from tests.synthesis import checking  # noqa: PLC0415

    source = path.read_text(encoding="utf-8")
    workloads = [w for w in checking.sizes_of(source, "cuda") if not w["name"].startswith("odd")]
    try:
        graphs = checking.graphs(source, workloads)
    except (SynthesisError, SyntaxError) as error:
        return {"outcome": "not traced", "reason": str(error)[:300]}
    firsts: dict[str, Any] = {}
    try:
        for draft in sequence(graphs, DeviceKind.CUDA, 0):
            if draft.strategy in firsts:
                break
            firsts[draft.strategy] = draft
        if not firsts:
            propose(graphs, DeviceKind.CUDA, number=0)
    except Unsupported as error:
        told = str(error)
        return {"outcome": "library calls" if "nothing to fuse" in told else "unsupported", "reason": told[:300]}
    row: dict[str, Any] = {"outcome": "compiled", "reason": "", "left": next(iter(firsts.values())).left, "plans": {}}
    for strategy, draft in firsts.items():
        found = compiled(path, draft.source, workloads)
        row["plans"][strategy] = found
        if isinstance(found, str):
            row |= {"outcome": "failed", "reason": f"{strategy}: {found}"}
    return row


def compiled(path: Path, source: str, workloads: list[dict[str, Any]]) -> int | str:
    """Return how many kernels a Candidate launches on its Workloads, or what is wrong with one."""
    from tests.synthesis.compiled import launched  # noqa: PLC0415

    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as written:
        written.write(source)
    try:
        launches = [
            one
            for sizes in workloads
            for one in launched(written.name, str(path), {k: v for k, v in sizes.items() if k != "name"})
        ]
    except Exception as error:  # noqa: BLE001  whatever does not compile is a result
        return f"{type(error).__name__}: {str(error).strip()[-400:]}"
    finally:
        Path(written.name).unlink()
    for one in launches:
        if any(size > most for size, most in zip(one["grid"], GRID, strict=False)):
            return f"{one['kernel']}: a grid of {one['grid']}"
    return len(launches)


def row_of(path: Path, limit_s: float) -> dict[str, Any]:
    """Return one reference's row, from a fork of this process."""
    row: dict[str, Any] = {"reference": f"{path.parent.name}/{path.stem}"}
    start = time.monotonic()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(path, theirs))
    child.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(limit_s) else None
        child.join(5)
    except EOFError:
        child.join()
        return row | {"outcome": "failed", "reason": f"the process ended with status {child.exitcode}"}
    finally:
        child.kill()
        child.join()
    row["took_s"] = round(time.monotonic() - start, 1)
    return row | (found or {"outcome": "too slow", "reason": f"not through after {limit_s:g} s"})


def _answer(path: Path, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # what references print  # noqa: SIM115
    try:
        pipe.send(covered(path))
    except Exception as error:  # noqa: BLE001  a fault of the synthesiser is a result
        pipe.send({"outcome": "failed", "reason": f"{type(error).__name__}: {str(error)[:300]}"})


def chosen(options: argparse.Namespace) -> list[Path]:
    """Return KernelBench's references, or the problem files of a folder."""
    if (options.checkout / "KernelBench").is_dir():
        return select_references(options)
    return list(of_shard(sorted(options.checkout.rglob("*.py")), options.shard or "1/1"))


def main() -> int:
    os.environ["OMP_NUM_THREADS"] = "1"  # the process is forked
    import tests.synthesis.checking  # noqa: PLC0415  torch and Triton, once for all references
    import tests.synthesis.compiled  # noqa: F401, PLC0415

    options = kernelbench_parser(__doc__).parse_args()
    output = options.output or ROOT / "bench" / "results" / "coverage.jsonl"
    known = read_rows(output) if options.resume and output.exists() else {}
    start = time.monotonic()
    with output.open("a" if options.resume else "w", encoding="utf-8") as sink:
        for path in chosen(options):
            name = f"{path.parent.name}/{path.stem}"
            if name in known or time.monotonic() - start > options.budget_s:
                continue
            known[name] = row_of(path, options.limit_s)
            sink.write(json.dumps(known[name]) + "\n")
            sink.flush()
            print(f"{name:60} {known[name]['outcome']:13} {known[name]['reason'][:120]}", flush=True)
    print(dict(Counter(row["outcome"] for row in known.values())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
