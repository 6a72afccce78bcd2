"""Measure how long caged children take to start, reply, freeze and end: `python -m bench.cage`.

Print p50 and p95 of each, in the units of the names.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind


def _timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _line(name: str, samples_s: list[float], unit: str) -> str:
    scale = {"ms": 1e3, "us": 1e6}[unit]
    cuts = statistics.quantiles(samples_s, n=20, method="inclusive")
    return f"{name:<28} p50 {cuts[9] * scale:9.2f} {unit}   p95 {cuts[18] * scale:9.2f} {unit}"


def _one_child(pool: ChildPool, requests: int, samples: dict[str, list[float]]) -> None:
    begin = time.perf_counter()
    child: ChildProcess = pool.start(name="bench")
    samples["start"].append(time.perf_counter() - begin)
    with child:
        for _ in range(requests):
            samples["request"].append(_timed(lambda: child.request("ping", timeout_s=10)))
        samples["freeze"].append(_timed(child.freeze))
        samples["thaw"].append(_timed(child.thaw))
        samples["close"].append(_timed(child.close))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=[kind.value for kind in DeviceKind])
    parser.add_argument("--children", type=int, default=100)
    parser.add_argument("--requests", type=int, default=50, help="null requests to each child")
    options = parser.parse_args()
    samples: dict[str, list[float]] = {name: [] for name in ("start", "request", "freeze", "thaw", "close")}
    begin = time.perf_counter()
    with ChildPool(DeviceKind(options.device)) as pool:
        ready_s = time.perf_counter() - begin
        print(f"pool ready after {ready_s:.2f} s, level {pool.level}, not enforced: {pool.isolation}")
        for _ in range(options.children):
            _one_child(pool, options.requests, samples)
    for name, unit in (("start", "ms"), ("request", "us"), ("freeze", "us"), ("thaw", "us"), ("close", "ms")):
        print(_line(f"{name} ({len(samples[name])} samples)", samples[name], unit))


if __name__ == "__main__":
    main()
