"""Record one worker's share of a problem's kernels for `bench.search.record`, with a line for each."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import random
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bench.search import composed
from bench.search.bed import Bed, Wrong, hold_device
from bench.search.designs import Design, Item, bases, designs, hand_written, items
from evaluator.languages import adapter
from evaluator.types import DeviceKind, Language, Verdict, content_hash
from tests.synthesis import checking

DESIGNS, DEEP_DESIGNS = 60, 160
AGAIN_EVERY = 12
CRASHED = 3
"""Exit code when a kernel has taken the device context down."""
FATAL = ("CUDA error", "CUDA driver error", "Triton Error [CUDA]", "illegal memory access", "device-side assert")


def work(options: argparse.Namespace) -> int:
    """Record this shard's kernels until the time is up."""
    [name] = options.problems
    shard, end = int(options.worker), time.time() + options.budget_s
    cuda = options.device != "cpu"
    torch.set_num_threads(1)
    source = composed.reference(name)
    folder = options.output / "kernels"
    folder.mkdir(exist_ok=True)
    part, now = (options.output / f"{name}.{shard}.{ending}" for ending in ("jsonl", "now"))
    seed = int(content_hash(name, str(options.seed))[:8], 16)
    chosen = _chosen(name, source, DeviceKind.CUDA if cuda else DeviceKind.CPU, seed)
    lock = options.output / "device.lock" if cuda else None
    bed = Bed(source, options.device, folder, lock, timed=name.partition("-")[2])
    known = _known(part, options.output / f"{name}.known")
    with hold_device(bed.lock):
        bed.intact()
    recorder = Recorder(bed, f"{time.time():.0f}.{shard}", random.Random(shard))
    with part.open("a") as out:

        def write(line: dict[str, Any]) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        write({"line": "about", "problem": name, "device": _device(options.device), **_about(bed)})
        for design in chosen:
            write({"line": "design", "family": design.family, "base": design.base, "edits": design.edits,
                   "language": design.language.value, "source": design.source})  # fmt: skip
        for number, item in enumerate(items(chosen, seed, *composed.slips(name))):
            if time.time() > end or recorder.count >= options.most:
                break
            if number % options.shards != shard or item.hash in known:
                continue
            now.write_text(json.dumps(recorder.head(item)))
            write(recorder.line(item))
            if recorder.crashed:
                return CRASHED
            again = recorder.again()
            if again is not None:
                write(again)
    return 0


def _chosen(name: str, source: str, kind: DeviceKind, seed: int) -> list[Design]:
    """Return the designs of a problem, in the order of recording."""
    if composed.is_composed(name):
        return list(composed.designs(name, seed, DEEP_DESIGNS if composed.is_deep(name) else DESIGNS))
    graphs = checking.graphs(source, checking.sizes_of(source, kind.value))
    by_hand = hand_written(name) if kind is DeviceKind.CUDA else []
    return list(designs(bases(graphs, kind, seed), source, seed, DESIGNS, by_hand))


def _known(*paths: Path) -> set[str]:
    """Return the kernels that were recorded before."""
    lines = [json.loads(text) for path in paths if path.exists() for text in path.read_text().splitlines() if text]
    return {line["hash"] for line in lines if line["line"] == "kernel"}


def _device(device: str) -> str:
    return torch.cuda.get_device_name() if device != "cpu" else platform.processor() or platform.machine()


def _about(bed: Bed) -> dict[str, Any]:
    triton = __import__("triton").__version__ if bed.cuda else None
    timed = [w for w in bed.workloads if not w.held_out]
    return {
        "versions": {"torch": torch.__version__, "triton": triton, "python": platform.python_version()},
        "workloads": [
            {"name": w.name, "sizes": w.sizes, "baselines_us": w.baselines_us, "comparator": w.comparator_name,
             "sets": len(w.sets)} for w in timed
        ],
    }  # fmt: skip


@dataclass
class Recorder:
    """Judges kernels on a bed, one after the other."""

    bed: Bed
    session: str
    rng: random.Random
    passed: list[Item] = field(default_factory=list)
    crashed: bool = False
    count: int = 0

    def head(self, item: Item) -> dict[str, Any]:
        """Return the facts of a kernel before it is run."""
        slipped = item.origin is not None
        return {
            "line": "kernel",
            "hash": item.hash,
            "family": item.design.family,
            "niche": str(adapter(item.design.language).niche(item.source)),
            "configuration": dict(item.configuration),
            **({"origin": item.origin, "slip": item.slip} if slipped else {}),
        }

    def line(self, item: Item) -> dict[str, Any]:
        """Return the line of one kernel. Set `crashed` if it broke the device context."""
        self.count += 1
        began = time.perf_counter()
        found: dict[str, Any] = {"verdict": Verdict.PASSED.value}
        seconds = {"build_s": 0.0, "device_s": 0.0}
        try:
            found |= self._judged(item, seconds)
            self.passed.append(item)
        except Wrong as wrong:
            found = {"verdict": wrong.verdict.value, "reason": str(wrong)[:300]}
        except Exception as error:  # noqa: BLE001  any failure of a kernel becomes a line
            text = f"{type(error).__name__}: {error}"
            found = {"verdict": _verdict(text).value, "reason": text[:300]}
            self.crashed = self.bed.cuda and any(sign in text for sign in FATAL)
        if item.origin is not None and not self.crashed:
            with hold_device(self.bed.lock):
                self.crashed = not self.bed.intact()  # a slip wrote out of bounds
        took = {name: round(value, 4) for name, value in seconds.items()}
        return {**self.head(item), **found, **took, "took_s": round(time.perf_counter() - began, 4)}

    def _judged(self, item: Item, seconds: dict[str, float]) -> dict[str, Any]:
        bed, launches = self.bed, Launches(self.bed.cuda and item.design.language is Language.TRITON)
        began = time.perf_counter()
        try:
            module = bed.module(item.source)
        except Exception as error:
            raise Wrong(Verdict.BUILD_ERROR, f"{type(error).__name__}: {error}") from error
        try:
            with launches.withheld():
                models = [(bed.build_model(module, w), w) for w in bed.workloads]
                for model, workload in models if launches.on or item.design.language is Language.TORCH else []:
                    with torch.no_grad():
                        model(*workload.inputs)
            seconds["build_s"] = time.perf_counter() - began
            rows = []
            for model, workload in sorted(models, key=lambda m: not m[1].held_out):
                with hold_device(bed.lock):
                    start = time.perf_counter()
                    with launches.noted():
                        bed.check(model, workload)
                    if not workload.held_out:
                        rows.append(bed.time_model(model, workload))
                    seconds["device_s"] += time.perf_counter() - start
            return {
                "log_speedup": round(sum(row["log_ratio"] for row in rows) / len(rows), 5),
                "error": round(math.sqrt(sum(row["error"] ** 2 for row in rows)) / len(rows), 5),
                "signature": launches.signature(),
                "rows": rows,
            }
        finally:
            bed.forget(module)

    def again(self) -> dict[str, Any] | None:
        """Measure an earlier kernel once more, at times."""
        if self.count % AGAIN_EVERY or len(self.passed) < 10:
            return None
        item = self.rng.choice(self.passed[:-5])
        line = self.line(item)
        if line["verdict"] == Verdict.PASSED:
            self.passed.pop()
        kept = {key: line[key] for key in ("hash", "log_speedup", "error", "verdict") if key in line}
        return {"line": "again", "session": f"{self.session}.{self.count}", **kept}


def _verdict(text: str) -> Verdict:
    if "CompilationError" in text or "PassManager" in text or "ptxas" in text.lower() or "BuildError" in text:
        return Verdict.BUILD_ERROR
    return Verdict.OUT_OF_MEMORY if "out of memory" in text else Verdict.RUNTIME_ERROR


class Launches:
    """Triton's launches of a kernel: held back while it is compiled ahead, and noted for its signature."""

    def __init__(self, on: bool) -> None:
        self.on = on
        self.seen: list[str] = []

    def withheld(self) -> Patched:
        """Compile kernels without launching them while entered."""

        def compile_only(run: Any, function: Any, args: Any, grid: Any, options: Any) -> Any:
            return run(function, *args, grid=grid, **{**options, "warmup": True})

        return Patched(self.on, compile_only)

    def noted(self) -> Patched:
        return Patched(self.on, self._note)

    def _note(self, run: Any, function: Any, args: Any, grid: Any, options: Any) -> Any:
        kernel = run(function, *args, grid=grid, **options)
        code = re.sub(rf"\b{re.escape(function.__name__)}\w*", "kernel", kernel.asm["ptx"])
        plain = [f"{tuple(a.shape)}{a.dtype}" if isinstance(a, torch.Tensor) else str(a) for a in args]
        digest = hashlib.sha256(code.encode()).hexdigest()
        metadata = kernel.metadata
        self.seen.append(f"{digest} {grid} {metadata.num_warps} {metadata.shared} {plain}")
        return kernel

    def signature(self) -> str | None:
        """Return a signature: equal for kernels that launch the same code in the same way on every Workload."""
        return content_hash("launches", *self.seen)[:24] if self.seen else None


class Patched:
    """Replace `JITFunction.run` for a while."""

    def __init__(self, on: bool, call: Any) -> None:
        self.on, self.call = on, call

    def __enter__(self) -> None:
        if self.on:
            from triton.runtime.jit import JITFunction  # noqa: PLC0415  there is none on a CPU

            self.old = run = JITFunction.run
            call = self.call

            def replaced(function: Any, *args: Any, grid: Any, **options: Any) -> Any:
                return call(run, function, args, grid, options)

            JITFunction.run = replaced

    def __exit__(self, *_: object) -> None:
        if self.on:
            from triton.runtime.jit import JITFunction  # noqa: PLC0415  there is none on a CPU

            JITFunction.run = self.old
