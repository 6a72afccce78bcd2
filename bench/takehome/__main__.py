"""Measure the host cost of exported kernels and the time of 28 imports.

    python -m bench.takehome [--device cpu|cuda] [--output FILE.json]
    QUICK=1 make bench-takehome

`raw_us` is a call of the kernel alone, `guarded_us` one of the exported module, `guard_us` the guard around a kernel
that does nothing; each is the fastest of many short rounds, for 20 s at most, since other work only adds. `first_s`
imports 28 files with nothing kept on disk, `again_s` in another process, without the time of importing torch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.machine import describe
from bench.takehome.kernels import exports
from evaluator.types import DeviceKind
from service.exports import KERNELS, Export

RESULTS = Path(__file__).resolve().parents[1] / "results"
FILES, LIMIT_S = 28, 300.0
COST = """
import json, sys, time, timeit, torch
import kernel
torch.set_num_threads(1)
device, rounds = sys.argv[1], int(sys.argv[2])
reference = kernel._ww_reference
alone = kernel.UnguardedModelNew(*reference.get_init_inputs()).to(device)
guarded, empty = (kernel.ModelNew(*reference.get_init_inputs()).to(device) for _ in range(2))
inputs = [one.to(device) for one in reference.get_inputs()]

def fastest_us(call):
    times, until = [], time.monotonic() + 20
    while len(times) < rounds and time.monotonic() < until:
        times.append(timeit.timeit(lambda: call(*inputs), number=40) / 40 * 1e6)
        torch.cuda.synchronize() if device == "cuda" else None
    return round(min(times), 2)

with torch.no_grad():
    right = reference.Model(*reference.get_init_inputs()).to(device)
    right.load_state_dict(guarded.state_dict())
    torch.testing.assert_close(guarded(*inputs), right(*inputs))
    told = {"raw_us": fastest_us(alone.forward), "guarded_us": fastest_us(guarded.forward)}
    kernel.UnguardedModelNew.forward = lambda self, *args: None
    empty(*inputs)
    told["guard_us"] = fastest_us(empty.forward)
    assert guarded._ww_state.calls and empty(*inputs) is None, "the reference answered"
print(json.dumps(told))
"""
IMPORTS = """
import sys, time, torch
if sys.argv[1] == "cuda":
    import triton
    torch.cuda.init()
began = time.perf_counter()
for number in range(int(sys.argv[2])):
    __import__(f"kernel_{number}")
print(time.perf_counter() - began)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind], default="cpu")
    parser.add_argument("--output", type=Path, help="(default: bench/results/takehome-DEVICE.json)")
    options = parser.parse_args()
    kind, rounds = DeviceKind(options.device), 200 if os.environ.get("QUICK") else 3000
    found: dict[str, Any] = {"machine": describe()}
    for name, export in exports(kind).items():
        with tempfile.TemporaryDirectory() as folder:
            text = str(KERNELS["py"].build(export))
            Path(folder, "kernel.py").write_text(text, encoding="utf-8")
            found[name] = {"lines_around": _around(text, export), **json.loads(_run(folder, COST, kind, rounds))}
            print(f"{name}: {found[name]}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        _write_files(Path(folder), exports(kind)["flat"])
        found["imports"] = {
            name: round(float(_run(folder, IMPORTS, kind, FILES)), 3) for name in ("first_s", "again_s")
        }
    output = options.output or RESULTS / f"takehome-{kind.value}.json"
    output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    flat, nested, imports = found["flat"], found["nested"], found["imports"]
    print(
        f"guard {flat['guard_us']} us flat, {nested['guard_us']} us nested; raw {flat['raw_us']} us, guarded"
        f" {flat['guarded_us']} us; {FILES} imports {imports['first_s']} s, again {imports['again_s']} s"
    )
    return 0


def _around(text: str, export: Export) -> int:
    """Return the number of lines around the kernel and the reference."""
    inner = (export.candidate.source, export.problem.source)
    return len(text.splitlines()) - sum(len(one.splitlines()) for one in inner)


def _write_files(folder: Path, export: Export) -> None:
    """Write copies that are other operators, with other C++."""
    text = str(KERNELS["py"].build(export))
    for number in range(FILES):
        copy = text.replace("module='ww_", f"module='ww_{number}_").replace("+ 1;", f"+ 1; // {number}")
        (folder / f"kernel_{number}.py").write_text(copy, encoding="utf-8")


def _run(folder: str, script: str, kind: DeviceKind, number: int) -> str:
    """Run a script beside the files, with a cache of its own, and return its last line."""
    environment = {**os.environ, "WARPWRIGHT_NATIVE_CACHE": f"{folder}/kept", "PYTHONPATH": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the second process finds bytecode, as usual
    command = [sys.executable, "-c", script, kind.value, str(number)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise SystemExit(f"the exported file failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
