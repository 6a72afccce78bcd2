"""Compare the synthesiser's Candidates with eager PyTorch and torch.compile, for every example problem.

    python bench/synthesis.py --device cpu [--drafts 8] [--problem NAME ...] [--output bench/results/synthesis-cpu.json]

CPU: one pinned thread, all variants interleaved, medians of wall time. CUDA: CUDA graphs over rotating copies of the
inputs (at least 256 MB together), medians of replays. Every Candidate is first compared with the reference in float64.
The references are our own examples, so they are traced in this process. These are figures of a bench, not verdicts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 30))
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 30))
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402  after the allocator's settings

from evaluator.types import DeviceKind  # noqa: E402
from synthesis.strategies import sequence  # noqa: E402
from tests.synthesis import checking  # noqa: E402

ROTATION_BYTES = 256 << 20
Call = Callable[[], Any]


def module_from_file(text: str) -> Any:
    """Return a module with its source on disk, as Triton requires."""
    folder = Path(tempfile.mkdtemp(prefix="warpwright-bench-"))
    path = folder / "candidate.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"candidate_{folder.name.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def seconds(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def interleaved(calls: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """Return the median microseconds of each call, the variants alternating."""
    repeats = {name: max(2, int(0.004 / seconds(call, 3))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(seconds(call, repeats[name]) * 1e6)
    return {name: statistics.median(values) for name, values in samples.items()}


def graphed(model: Any, sets: list[list[Any]]) -> Call | None:
    """Replay `model` over all input sets as one CUDA graph; None if it cannot be captured."""
    try:
        torch.cuda.synchronize()  # the input sets are made on another stream
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for inputs in sets[:2]:
                model(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = [model(*inputs) for inputs in sets]
    except RuntimeError as error:
        print(f"    not captured: {error}", file=sys.stderr)
        return None
    return lambda: (graph.replay(), kept)


def cuda_times(models: Mapping[str, Any], inputs: list[Any], rounds: int) -> dict[str, float]:
    size = sum(t.nbytes for t in inputs)
    count = max(2, min(64, -(-ROTATION_BYTES // max(size, 1))))
    sets = [[t.clone() for t in inputs] for _ in range(count)]
    graphs = {name: g for name, model in models.items() if (g := graphed(model, sets)) is not None}
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, replay in graphs.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            replay()
            end.record()
            end.synchronize()
            samples[name].append(start.elapsed_time(end) * 1e3 / count)
    return {name: statistics.median(values) for name, values in samples.items()}


def measure(path: Path, kind: DeviceKind, drafts: int, rounds: int, mode: str) -> list[dict[str, Any]]:
    """Return one row per Workload of a problem."""
    source = path.read_text(encoding="utf-8")
    workloads = checking.sizes_of(source, str(kind))
    shown = [w for w in workloads if w["name"] not in ("odd", "few-rows", "long-keys")]
    chosen = list(sequence(checking.graphs(source, shown), kind, 0))[:drafts]
    return [_workload(path.stem, source, w, chosen, kind, rounds, mode) for w in shown]


def _workload(
    name: str, source: str, workload: Mapping[str, Any], chosen: list[Any], kind: DeviceKind, rounds: int, mode: str
) -> dict[str, Any]:
    sizes = {k: v for k, v in workload.items() if k != "name"}
    torch._dynamo.reset()
    models: dict[str, Any] = {}
    problems: dict[str, str] = {}
    inputs: list[Any] = []
    for number, draft in enumerate(chosen):
        try:
            pair = checking.Pair(source, draft.source, sizes, device=str(kind))
            pair.check()
        except Exception as error:  # noqa: BLE001  a wrong Candidate is a result of the bench
            problems[f"{number}"] = f"{type(error).__name__}: {str(error)[:300]}"
            continue
        if not models:
            inputs = pair.inputs
            models["eager"] = pair.model
            models["compile"] = torch.compile(pair.model, mode=mode, dynamic=False)
        models[str(number)] = pair.candidate
    with torch.no_grad():
        for model in models.values():
            model(*inputs)
            model(*inputs)
        if kind is DeviceKind.CPU:
            times = interleaved({k: (lambda m=m: m(*inputs)) for k, m in models.items()}, rounds)
        else:
            times = cuda_times(models, inputs, rounds)
    ours = {int(k): t for k, t in times.items() if k not in ("eager", "compile")}
    best = min(ours, key=ours.__getitem__) if ours else None
    baseline = min(times[k] for k in ("eager", "compile") if k in times)
    row = {
        "problem": name,
        "workload": workload["name"],
        "eager_us": times.get("eager"),
        "compile_us": times.get("compile"),
    }
    row |= {"first_us": ours.get(0), "best_us": ours[best] if best is not None else None, "wrong": problems}
    if best is not None:
        row |= {"strategy": chosen[best].strategy, "configuration": dict(chosen[best].configuration)}
        row["ratio"] = baseline / ours[best]
    text = " ".join(f"{k} {v:.1f}" for k, v in row.items() if isinstance(v, float))
    print(
        f"{name:20s} {workload['name']:14s} {text} {row.get('strategy')} {row.get('configuration')} {problems}",
        flush=True,
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--drafts", type=int, default=8, help="number of Candidates of each problem")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--problem", nargs="*", help="names of examples; all by default")
    parser.add_argument("--mode", default="default", help="torch.compile's mode")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    kind = DeviceKind(options.device)
    torch.set_num_threads(1)
    if kind is DeviceKind.CPU:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    checking.module = module_from_file
    rows = []
    for path in sorted((ROOT / "examples" / "problems").glob("*.py")):
        if not options.problem or path.stem in options.problem:
            rows += measure(path, kind, options.drafts, options.rounds, options.mode)
    output = options.output or ROOT / "bench" / "results" / f"synthesis-{kind}.json"
    device = torch.cuda.get_device_name() if kind is DeviceKind.CUDA else platform.processor() or platform.machine()
    about = {"device": device, "torch": torch.__version__, "mode": options.mode, "drafts": options.drafts}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
