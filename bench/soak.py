"""Judge many kernels with one judge, a tenth of them hostile, to find leaks: `python -m bench.soak`

    python -m bench.soak [--device cpu|cuda:0] [--count 1000] [--budget-s S] [--shard I/N] [--resume] [--output FILE]

Append a JSON line per fifty kernels with the judge's resources: its resident memory, descriptors, processes below it,
files of ours in shared places, and the GPU's memory in use. Comparators and waiting children are ended before each
count. The last line compares the end with the count after the first fifty, when all lasting resources are in place.
With --resume the count continues where the file ends, from the start if that was the end; only figures of one process
are compared. QUICK=1: 100 kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.judge.bench import CUDA_KERNEL, KERNEL, PROBLEM, eager_only
from evaluator.cage import freezer
from evaluator.devices.base import DeviceBackend
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.serve import make_backend
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, DeviceKind, Verdict

RESULTS = Path(__file__).parent / "results"
EVERY = 50
SMALL = PROBLEM.replace('"rows": 32768', '"rows": 4096').replace('"rows": 512', '"rows": 64')
_HEAD = """import ctypes, os, threading, time
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden))

    def forward(self, x):
"""
_RIGHT = "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight"
HOSTILE = (
    ("ctypes.string_at(0)",),
    ("os._exit(0)",),
    ("kept = bytearray(40 << 30)", "return x"),
    ("print('x' * (1 << 22))", "return x"),
    ("open('/tmp/left', 'wb').write(b'x' * (1 << 22))", "os.fork()", "return x"),
    ("[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(20)]", "return x"),
    ("raise MemoryError",),
)
HOSTILE_ON_GPU = (
    ("index = torch.full((8,), 1 << 40, device=x.device)", "return x.flatten()[index]"),
    ("self.kept = torch.empty(100 << 30, dtype=torch.uint8, device=x.device)", "return x"),
    ("torch._assert_async(torch.zeros((), dtype=torch.bool, device=x.device))", "return x"),
)
WRONG = ("return x * 1.01", "return x[:, :1]", "return undefined_name")


def pick_kernel(index: int, *, cuda: bool) -> tuple[Candidate, bool | None]:
    """Return kernel number `index`, and its rightness (None: hostile, anything except a pass or our own error)."""
    if index % 10 == 7:
        every = (*HOSTILE, *(HOSTILE_ON_GPU if cuda else ()))
        return _lines(index, *every[index // 10 % len(every)]), None
    if index % 10 == 3:
        return _candidate((CUDA_KERNEL if cuda else KERNEL).replace("{extra}", "0"), index), True
    if index % 10 == 5:
        return _lines(index, _RIGHT), True
    return _lines(index, WRONG[index % 3]), False


def _lines(index: int, *lines: str) -> Candidate:
    return _candidate(_HEAD + "".join(f"        {line}\n" for line in lines), index)


def _candidate(source: str, index: int) -> Candidate:
    source = f"{source}# {index}\n"
    return Candidate(source=source, language=detect(source), proposer="bench")


def resources(judge: Judge) -> dict[str, float]:
    """Return the judge's resources now."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    resident_kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    files = sum(1 for folder in (tempfile.gettempdir(), "/dev/shm") for _ in Path(folder).glob("warpwright-*"))
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "processes": len(freezer.descendants(os.getpid())),
        "files": files,
        "resident_mib": round(resident_kib / 1024, 1),
        **_device_memory(judge.backend),
    }


def _device_memory(backend: DeviceBackend) -> dict[str, float]:
    if backend.kind is not DeviceKind.CUDA:
        return {}
    import torch  # noqa: PLC0415  the CPU needs none of it

    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(backend.torch_device)
    return {"device_mib": round((total - free) / 2**20, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
    parser.add_argument("--count", type=int, default=100 if os.environ.get("QUICK") else 1000)
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    parser.add_argument("--shard", default="1/1", metavar="I/N")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    path = options.output or RESULTS / f"soak-{options.device.partition(':')[0]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if options.resume and path.exists() else []
    first = max((line["kernels"] for line in lines if "kernels" in line), default=0)
    first = 0 if first >= options.count else first  # the file is complete: begin a new soak
    shard, _, shards = options.shard.partition("/")
    todo = [index for index in range(first, options.count) if index % int(shards) == int(shard) - 1]
    judge = Judge(make_backend(options.device))
    problem = read_problem(SMALL, "soak")
    end, wrong, counts = time.monotonic() + options.budget_s, [], []
    try:
        with path.open("a", encoding="utf-8") as file:
            _write(file, {"seen_on": machine.describe(), "device": options.device})
            for done, index in enumerate(todo, start=1):
                if time.monotonic() > end:
                    break
                what, right = pick_kernel(index, cuda=judge.backend.kind is DeviceKind.CUDA)
                found = judge.judge(problem, what, eager_only(judge, problem))
                if not _as_expected(found.verdict, right):
                    wrong.append(f"{index}: {found.verdict}: {found.reason}"[:300])
                if done % EVERY == 0 or index == todo[-1]:
                    judge.session.children.finish_background_work()
                    judge.session.forget(problem)
                    judge.session.reset()  # the number of children that wait at this moment is random
                    counts.append({"kernels": index + 1, **resources(judge)})
                    _write(file, counts[-1])
            result = {"wrong_verdicts": wrong[:20], "counted": counts[:1] + counts[-1:]}
            _write(file, result)
    finally:
        judge.close()
    grown, last = _grown(counts), counts[-1]["kernels"] if counts else 0
    print(f"soak: {last} kernels on {options.device}; {len(wrong)} wrong verdicts; {grown}")
    return 1 if wrong else 0


def _as_expected(verdict: Verdict, right: bool | None) -> bool:
    if verdict is Verdict.INTERNAL_ERROR:
        return False
    return (verdict is Verdict.PASSED) == bool(right)


def _grown(counts: list[dict[str, float]]) -> str:
    if len(counts) < 2:
        return "too few to compare"
    first, last = counts[0], counts[-1]
    return ", ".join(f"{name} {first[name]:g} -> {last[name]:g}" for name in first if name != "kernels")


def _write(file: Any, entry: dict[str, Any]) -> None:
    file.write(json.dumps(entry) + "\n")
    file.flush()
    print(json.dumps(entry)[:300], flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
