"""Prepare one problem on one device to judge thousands of kernels quickly. The figures are a bench's, not verdicts.

The kernels are ours, so nothing is caged. Each is compared with the reference in float64 on every timed Workload and on
a held-out one, on new poisoned memory, and again after it was timed. Time is that of CUDA-graph replays over rotating
copies of the inputs (256 MB at least), alternating with the faster of eager PyTorch and torch.compile. On a CPU (for a
trial) wall time of plain calls replaces the replays.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import fcntl
import importlib.util
import itertools
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from evaluator.types import Verdict, content_hash
from tests.synthesis import checking

ROTATION_BYTES = 256 << 20
CHUNK = 1 << 24
LEAST_SAMPLES = 7
MOST_SAMPLES = 25
COMPARATOR_US = 400.0
"""The comparator's turn takes about so long."""
NARROW = 0.003
"""Sampling stops once the standard error of the log ratio is below this."""
HOPELESS = 4.0
"""A kernel that takes this many times as long as the comparator gets three samples."""

Tensors = list[torch.Tensor]


class Replay(Protocol):
    """A callable to time: `calls` of a model at once, with their outputs kept."""

    kept: list[Tensors]

    @property
    def calls(self) -> int: ...

    def __call__(self) -> None: ...


class Wrong(Exception):
    """The kernel is refused; the message says why."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


@contextlib.contextmanager
def hold_device(path: Path | None) -> Iterator[None]:
    """Hold the device for one process at a time. A process that dies releases it."""
    if path is None:
        yield
        return
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path.with_suffix(".pid").write_text(str(os.getpid()))
        try:
            yield
        finally:
            path.with_suffix(".pid").write_text("")


@dataclass
class Workload:
    """One Workload: inputs, expected outputs, and the comparator."""

    name: str
    sizes: Mapping[str, Any]
    held_out: bool
    init: list[Any]
    inputs: Tensors
    state: dict[str, torch.Tensor]
    outputs: list[tuple[torch.Size, torch.dtype]]
    oracle: Tensors
    allowed: Tensors
    norms: list[float]
    sets: list[Tensors] = field(default_factory=list)
    comparator: Replay | None = None
    comparator_name: str = ""
    baselines_us: dict[str, float] = field(default_factory=dict)

    def all_tensors(self) -> Tensors:
        """Return all tensors that no kernel may change."""
        copies = [tensor for one in self.sets for tensor in one]
        return [*self.inputs, *copies, *self.state.values(), *self.oracle, *self.allowed]


class Bed:
    """The Workloads of a problem on a device, ready. `lock` is held for any use of the device.

    `timed` names the one Workload to time; empty for all. A single one is compared with eager PyTorch only: the
    comparator cancels the device's drift, and compiling it in every process takes long.
    """

    def __init__(self, source: str, device: str, folder: Path, lock: Path | None, timed: str = "") -> None:
        self.device, self.folder, self.lock = device, folder, lock
        self.cuda = device != "cpu"
        self.pool = torch.cuda.graph_pool_handle() if self.cuda else None
        self.stream = torch.cuda.Stream() if self.cuda else None
        self._pool_keeper = self._kept_pool()
        self.sums: list[int] = []
        reference = self.module(source)
        held_out = [w for w in _all_sizes(source, "cuda" if self.cuda else "cpu") if w.get("held_out")][:1]
        listed = [w for w in _all_sizes(source, "cuda" if self.cuda else "cpu") if not w.get("held_out")]
        listed = [w for w in listed if timed in ("", w["name"])]
        if not listed:
            raise ValueError(f"the problem has no Workload {timed!r} for this device")
        with hold_device(lock):
            self.workloads = [self._workload(reference, w) for w in (*listed, *held_out)]
        for workload in self.workloads:
            if not workload.held_out:
                self._compare_with(reference, workload, compiled=self.cuda and not timed)

    def _kept_pool(self) -> Any:
        """Keep a small graph in the pool: PyTorch frees a pool with its last graph, and refuses its use after that."""
        if self.stream is None:
            return None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            torch.cuda.synchronize()
            graph.capture_begin(pool=self.pool)
            kept = torch.zeros(1, device="cuda")
            graph.capture_end()
        return graph, kept

    def module(self, source: str) -> Any:
        """Return a module with its source on disk, as Triton requires."""
        name = f"kernel_{content_hash('bed', source)[:24]}"
        path = self.folder / f"{name}.py"
        if not path.exists():
            path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[name] = made
        spec.loader.exec_module(made)
        return made

    def forget(self, module: Any) -> None:
        sys.modules.pop(module.__name__, None)

    def _workload(self, reference: Any, about: Mapping[str, Any]) -> Workload:
        sizes = {k: v for k, v in about.items() if k not in ("name", "weight", "device", "held_out")}
        torch.manual_seed(int(content_hash("bed", str(about["name"]))[:8], 16))
        recipe = getattr(reference, "get_init_inputs", None)
        init = recipe(**checking.pick(recipe, sizes)) if recipe else []
        with torch.device(self.device):
            inputs = reference.get_inputs(**checking.pick(reference.get_inputs, sizes))
            model = reference.Model(*init).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, 0.5, 0.5)
        state = {name: value.clone() for name, value in model.state_dict().items()}
        wide = copy.deepcopy(model).double()
        with torch.no_grad(), checking.Lifted():
            oracle = [o.double().flatten() for o in checking.flat(wide(*(checking.widened(i) for i in inputs)))]
        with torch.no_grad():
            eager = checking.flat(model(*inputs))
        allowed, norms = [], []
        for mine, true in zip(eager, oracle, strict=True):
            limit, norm = _limits(mine, true)
            allowed.append(limit)
            norms.append(norm)
        outputs = [(o.shape, o.dtype) for o in eager]
        made = Workload(
            about["name"], sizes, bool(about.get("held_out")), init, inputs, state, outputs, oracle, allowed, norms
        )
        if not made.held_out:
            size = sum(t.nbytes for t in (*inputs, *eager))
            count = max(2, min(32, -(-ROTATION_BYTES // max(size, 1)))) if self.cuda else 2
            made.sets = [[t.clone() for t in inputs] for _ in range(count)]
        del wide, eager
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        return made

    def _compare_with(self, reference: Any, workload: Workload, *, compiled: bool) -> None:
        """Time eager and, if `compiled`, torch.compile, and keep the faster."""
        with torch.device("meta"):
            model = reference.Model(*workload.init).eval()
        model.load_state_dict(workload.state, assign=True)
        replays: dict[str, Replay] = {}
        called_as: dict[str, Any] = {"eager": model}
        if compiled:
            torch._dynamo.reset()
            called_as["compile"] = torch.compile(model, dynamic=False)
        for name, called in called_as.items():
            try:
                with torch.no_grad():
                    called(*workload.inputs)  # compiles, without the lock
                with hold_device(self.lock):
                    times = self.samples(self.replay(called, workload, most=1), None, 7)[0]
                    workload.baselines_us[name] = us = statistics.median(times)
                    replays[name] = self.replay(called, workload, most=max(1, math.ceil(COMPARATOR_US / us)))
            except Exception as error:  # noqa: BLE001  one comparator less is said, and no reason to stop
                print(f"{workload.name}: no {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        workload.comparator_name = min(workload.baselines_us, key=workload.baselines_us.__getitem__)
        workload.comparator = replays[workload.comparator_name]

    def intact(self) -> bool:
        """Return true if all data that kernels are compared with is as it was at the first call."""
        sums = torch.stack([_sum(t) for w in self.workloads for t in w.all_tensors()]).tolist()
        self.sums = self.sums or sums
        return self.sums == sums

    def build_model(self, module: Any, workload: Workload) -> Any:
        """Return the Candidate's module with the reference's parameters."""
        try:
            # Share the parameters: filling and copying 100 MB for each of thousands of kernels would take longer
            # than running them. `intact` notices a kernel that writes to them.
            with torch.device("meta"):
                model = module.ModelNew(*workload.init).eval()
            model.load_state_dict(workload.state, assign=True)
            return model
        except Exception as error:
            raise Wrong(Verdict.INVALID_SUBMISSION, f"{type(error).__name__}: {str(error)[:300]}") from error

    def check(self, model: Any, workload: Workload) -> None:
        """Run once on poisoned memory and compare. Raise Wrong."""
        if self.cuda:
            poison = [torch.empty(shape, dtype=kind, device=self.device).fill_(-77) for shape, kind in workload.outputs]
            del poison
        with torch.no_grad():
            got = checking.flat(model(*workload.inputs))
        self.compare(got, workload)

    def compare(self, got: Tensors, workload: Workload) -> None:
        if len(got) != len(workload.outputs):
            raise Wrong(Verdict.INCORRECT_SHAPE, f"{len(got)} outputs, not {len(workload.outputs)}")
        each = zip(got, workload.outputs, workload.oracle, workload.allowed, workload.norms, strict=True)
        for tensor, (shape, kind), oracle, allowed, norm in each:
            if tensor.shape != shape:
                raise Wrong(Verdict.INCORRECT_SHAPE, f"{tuple(tensor.shape)}, not {tuple(shape)}")
            if tensor.dtype != kind:
                raise Wrong(Verdict.INCORRECT_DTYPE, f"{tensor.dtype}, not {kind}")
            wrong, total, flat = 0, 0.0, tensor.reshape(-1)
            parts = []
            for start in range(0, flat.numel(), CHUNK):
                error = (flat[start : start + CHUNK].double() - oracle[start : start + CHUNK]).abs_()
                outside = ~(error <= allowed[start : start + CHUNK])
                parts.append(torch.stack([outside.sum().double(), error.square().sum()]))
            wrong, total = torch.stack(parts).sum(0).tolist()
            if wrong or not math.sqrt(total) <= norm:
                reason = f"{int(wrong)} of {flat.numel()} elements are off on {workload.name}"
                raise Wrong(Verdict.INCORRECT_VALUES, reason)

    def replay(self, model: Any, workload: Workload, most: int = 32) -> Replay:
        """Run at most so many of the input sets through a model, as one CUDA graph; `kept` are the outputs."""
        sets = workload.sets[:most]
        if not self.cuda:
            return _Plain(model, sets)
        assert self.stream is not None
        with torch.no_grad(), torch.cuda.stream(self.stream):
            model(*sets[0])
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(pool=self.pool)
            try:
                kept = [checking.flat(model(*inputs)) for inputs in sets]
            finally:
                graph.capture_end()
        return _Graph(graph, kept)

    def samples(self, one: Replay, other: Replay | None, most: int) -> tuple[list[float], list[float]]:
        """Return microseconds per call of one and the other, alternating, after one uncounted turn."""
        mine: list[float] = []
        theirs: list[float] = []
        for _ in range(most + 1):
            times = self._times([one] if other is None else [one, other])
            mine.append(times[0] / one.calls)
            theirs.append(times[-1] / (other or one).calls)
        return mine[1:], theirs[1:]

    def _times(self, replays: list[Replay]) -> list[float]:
        if not self.cuda:
            found = []
            for replay in replays:
                start = time.perf_counter()
                replay()
                found.append((time.perf_counter() - start) * 1e6)
            return found
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(replays) + 1)]
        events[0].record()
        for replay, event in zip(replays, events[1:], strict=True):
            replay()
            event.record()
        events[-1].synchronize()
        return [a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(events)]

    def time_model(self, model: Any, workload: Workload) -> dict[str, Any]:
        """Return medians in microseconds, the log ratio's mean and standard error, and the number of samples."""
        assert workload.comparator is not None
        replay = self.replay(model, workload)
        mine, theirs = self.samples(replay, workload.comparator, 3)
        if statistics.median(mine) < HOPELESS * statistics.median(theirs):
            while len(mine) < MOST_SAMPLES:
                more = self.samples(replay, workload.comparator, 2)
                mine, theirs = mine + more[0], theirs + more[1]
                logs = [math.log(b / a) for a, b in zip(mine, theirs, strict=True)]
                if len(logs) >= LEAST_SAMPLES and statistics.stdev(logs) / math.sqrt(len(logs)) < NARROW:
                    break
        logs = [math.log(b / a) for a, b in zip(mine, theirs, strict=True)]
        replay()  # graphs of one pool share memory: the comparator's replays may have overwritten these outputs
        self.compare(replay.kept[-1], workload)
        return {
            "workload": workload.name,
            "us": round(statistics.median(mine), 3),
            "comparator_us": round(statistics.median(theirs), 3),
            "log_ratio": round(statistics.median(logs), 5),
            "error": round(statistics.stdev(logs) / math.sqrt(len(logs)), 5),
            "samples": len(logs),
        }


@dataclass
class _Graph:
    graph: Any
    kept: list[Tensors]

    @property
    def calls(self) -> int:
        return len(self.kept)

    def __call__(self) -> None:
        self.graph.replay()


class _Plain:
    def __init__(self, model: Any, sets: list[Tensors]) -> None:
        self.model, self.sets = model, sets
        self.calls = len(sets)
        self.kept: list[Tensors] = []

    def __call__(self) -> None:
        with torch.no_grad():
            self.kept = [checking.flat(self.model(*inputs)) for inputs in self.sets]


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.detach().reshape(-1).view(kinds[tensor.element_size()]).sum(dtype=torch.int64)


def _limits(eager: torch.Tensor, oracle: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the limits of each element (as `tests.synthesis.checking.compare`), and of all of them in norm."""
    if not eager.is_floating_point():
        return torch.zeros_like(oracle), 0.0
    assert bool(oracle.isfinite().all()), "a landscape's reference has no infinities"
    honest, scale = (eager.double().flatten() - oracle).abs(), oracle.abs()
    unit = 3e-7 if eager.dtype == torch.float32 else torch.finfo(eager.dtype).eps
    least = 4 * honest.mean() + unit * scale.mean()
    norm = 4 * max(honest.norm().item(), unit * scale.norm().item())
    return (4 * torch.maximum(honest, unit * scale) + least).float(), norm


def _all_sizes(source: str, device: str) -> list[dict[str, Any]]:
    """Return the WORKLOADS of a problem for a device kind, held-out ones too."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOADS":
            entries = ast.literal_eval(node.value)
            return [e for e in entries if e.get("device") in (None, device)]
    return [{"name": "default"}]
