"""The CPU backend: a reserved core for each thread, memory files shown to a child, results read out of the frozen
child."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import platform
import random
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from evaluator.cage.policy import CagePolicy
from evaluator.child.protocol.chain import Link
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.comparison.claims import replies_of, tensor_claims
from evaluator.devices.base import PlainLoop, Round, RoundPlan, RoundRequest, SingleCallRound
from evaluator.devices.cpu_memory import CpuGrant, SharedGrant, Staged, mark_aliases, read_claim
from evaluator.devices.cpu_single_calls import SingleCallGrants
from evaluator.devices.cpu_threads import asked_threads, reserve_cores
from evaluator.errors import CageError, ChildFault
from evaluator.languages import optional_versions
from evaluator.sandbox import symbols
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.process import ChildProcess, Place
from evaluator.types import Clock, Device, DeviceKind, Environment

_MAX_ROUND_BYTES = 96 << 20
_PRELOAD = ("torch", "evaluator.child.ops", "evaluator.child.cpu_device")
# The imports of torch.compile's first call, which take several seconds.
_COMPILER = (
    "torch._dynamo.backends.inductor",
    "torch._inductor.codegen.cpp",
    "torch._inductor.compile_fx",
    "torch.utils.cpp_extension",
)
# Where `load_cpp` looks: libraries that an earlier child of the same Candidate compiled, then its own folder.
_ENVIRONMENT = {"WARPWRIGHT_NATIVE_CACHE": "/job/native:/tmp/native"}
# Of a round. What a child does once a round, answering above all, is little beside the Python of so many calls.
_MAX_CALLS = 500
_CAP_SYS_NICE = 23
_RELEASE_S = 20.0
_PLAIN_US = 20_000.0  # at least, of a plain loop: asking for it costs some 50 us
_COPY_BYTES = 64 << 20
_CODE_BYTES = 48  # of code at a sample: some ten instructions
_GAP_S, _HAS_RUN_US = (0.00006, 0.0004), 50.0  # after it got its core; a stop alone costs the child some 20 us
_MALLOC = {-1: 1 << 30, -2: 64 << 20, -3: 32 << 20}  # M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD of malloc.h


class CpuBackend:
    """Implements `evaluator.devices.base.DeviceBackend`."""

    kind = DeviceKind.CPU
    round_us = 10_000.0
    batch_bytes = 16 << 20
    torch_device = torch.device("cpu")

    def __init__(self, threads: int | None = None, cpus: set[int] | None = None) -> None:
        _keep_freed_memory()
        cpus = cpus or os.sched_getaffinity(0)
        self.threads, *others = (threads,) if threads else asked_threads(len(cpus))
        self.other_threads = tuple(others)  # that kernels are judged with when they have passed
        self.cores, self.others = reserve_cores(cpus, self.threads)
        self.core = max(self.cores)  # names the device: judges with other numbers of threads share its lock
        self._copy_rate_gbs: float | None = None
        self._shared: SharedGrant | None = None
        self._staged: dict[ChildProcess, Staged] = {}

    def with_threads(self, threads: int) -> CpuBackend:
        """Return another backend of the same cores, with so many threads."""
        return CpuBackend(threads, {*self.cores, *self.others})

    def step_aside(self) -> None:
        """Keep the judge itself off the reserved cores. Threads and processes started later inherit this."""
        os.sched_setaffinity(0, self.others)

    def describe(self) -> Device:
        facts = {
            "cores": len(self.others | self.cores),
            "reserved_core": self.core,
            "threads": self.threads,
            "flags": _vector_flags(_cpu_info()),
            **({"model": model} if (model := _model(_cpu_info())) else {}),
            **({"caches": caches} if (caches := _caches(self.core)) else {}),
        }
        name = _cpu_name()
        return Device(kind=self.kind, name=name, uuid=f"cpu-{platform.node()}-{self.core}", facts=facts)

    def environment(self) -> Environment:
        return Environment(
            python=platform.python_version(),
            torch=str(torch.__version__),
            triton=None,
            compiler=_compiler_version(),
            threads=self.threads,
            languages=optional_versions(),
        )

    def pool(
        self, environment: Mapping[str, str] | None = None, *, compiler: bool = False, preload: Sequence[str] = ()
    ) -> ChildPool:
        """Return children on the reserved cores. With `compiler` they are forked from a process that has torch's
        compiler loaded, on the other cores if `place` can move them."""
        modules = (*_PRELOAD, *(_COMPILER if compiler else ()), *preload)
        openmp = {"OMP_NUM_THREADS": str(self.threads)} if self.threads > 1 else {}
        policy = CagePolicy(environment={**_ENVIRONMENT, **openmp, **(environment or {})}, preload=modules)
        cpus = self.others if compiler and self.compiles_beside else self.cores
        return ChildPool(self.kind, cpus=cpus, policy=policy)

    @property
    def compiles_beside(self) -> bool:
        return self.judge_has_own_core and _may_move_processes()

    def place(self, child: ChildProcess) -> None:
        if not self.compiles_beside:
            return
        try:
            for task in Path(f"/proc/{child.pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), self.cores)
        except OSError as error:
            raise CageError(f"a compiled baseline cannot be moved to cores {sorted(self.cores)}: {error}") from error

    def grant(self, tensors: Sequence[torch.Tensor]) -> CpuGrant:
        return CpuGrant([tensors])

    def build_environment(self) -> Mapping[str, str]:
        return {}

    def grant_calls(self, calls: Sequence[Sequence[torch.Tensor]], *, ours: bool = False) -> CpuGrant:
        if not ours:
            return CpuGrant(calls, shared=True)
        if self._shared is None or self._shared.calls is not calls:
            self._share(SharedGrant(calls))
        assert self._shared is not None
        return self._shared

    def _share(self, grant: SharedGrant | None) -> None:
        if self._shared is not None:
            self._shared.free()
        self._shared = grant

    def fetch(
        self, child: ChildProcess, claims: Sequence[Mapping[str, Any]], *, ours: bool = False
    ) -> list[torch.Tensor]:
        del ours
        return [read_claim(child, claim) for claim in claims]

    def plan(
        self, call_us: float, call_bytes: int, output_bytes: int, round_us: float, parameter_bytes: int = 0
    ) -> RoundPlan:
        wanted = math.ceil(round_us / max(call_us, 0.1))
        affordable = max(1, _MAX_ROUND_BYTES // max(1, call_bytes + output_bytes))
        return RoundPlan(calls=max(1, min(wanted, affordable, _MAX_CALLS)))

    def prepare(self, child: ChildProcess, request: RoundRequest, *, graph: bool = True) -> Clock:
        """Do nothing: a CPU has no graphs, and warming up is a round that does not count."""
        return Clock.CALLS

    def run_round(self, child: ChildProcess, request: RoundRequest) -> Round:
        """Run a round. The clock starts while the child is stopped, with its inputs written. The child stays stopped
        until the next request, so that it does not disturb others."""
        calls, link = request.calls, request.link
        staged = self._stage(child, calls, link, request.timeout_s)
        armed = staged.fields(len(calls), link)
        child.request("cpu_arm", timeout_s=request.timeout_s, tree=request.tree, **armed)
        child.freeze()
        staged.write(calls, link)
        child.check_frozen()  # no process read the inputs before the clock started
        before_us, faults = child.run_and_queue_us(), child.minor_faults()
        start = time.perf_counter_ns()
        child.thaw()
        sampler = _Sampler(child, request.watch_at_us) if request.watch else None
        reply = child.request("cpu_round", timeout_s=request.timeout_s, meanwhile=sampler)
        child.freeze()
        wall_us = (time.perf_counter_ns() - start) / 1000
        ran_us, waited_us = (now - before for now, before in zip(child.run_and_queue_us(), before_us, strict=True))
        replies, outputs, inputs = self._read_round(child, staged, reply, request)
        diagnostics = sampler.diagnostics() if sampler is not None else {}
        diagnostics["page_faults"] = child.minor_faults() - faults
        return Round(
            plan=request.plan,
            wall_us=wall_us,
            ran_us=ran_us,
            waited_us=waited_us,
            replies=replies,
            outputs=outputs,
            inputs=inputs,
            diagnostics=diagnostics,
        )

    def run_plainly(
        self, child: ChildProcess, request: RoundRequest, *, call_us: float, profile: bool = False
    ) -> PlainLoop:
        """Implement `DeviceBackend.run_plainly`. The first pass does not count."""
        del profile
        calls, timeout_s = request.calls, request.timeout_s
        staged = self._stage(child, calls, None, timeout_s)
        child.request("cpu_arm", timeout_s=timeout_s, tree=request.tree, **staged.fields(len(calls), None))
        staged.write(calls, None)
        child.request("cpu_plain", timeout_s=timeout_s, passes=1)
        passes = math.ceil(_PLAIN_US / max(1.0, call_us * len(calls)))
        start = time.perf_counter_ns()
        child.request("cpu_plain", timeout_s=timeout_s, passes=passes)
        wall_us = (time.perf_counter_ns() - start) / 1000
        child.freeze()
        return PlainLoop(wall_us / (passes * len(calls)))

    @property
    def judge_has_own_core(self) -> bool:
        """Return whether the judge has a core apart from those on which children are timed."""
        return not self.cores & self.others

    def run_single_calls(
        self, child: ChildProcess, request: RoundRequest, layouts: Sequence[TensorSpec]
    ) -> SingleCallRound:
        """Implement `SingleCallBackend.run_single_calls`."""
        calls = request.calls
        staged = self._stage(child, calls, None, request.timeout_s)
        armed = staged.fields(len(calls), None)
        child.request("cpu_arm", timeout_s=request.timeout_s, tree=request.tree, **armed)
        with SingleCallGrants(child, staged, calls, layouts) as grants:
            reply = child.request("cpu_singles", timeout_s=request.timeout_s, fds=[grants.fd], meanwhile=grants)
            child.freeze()
            grants()  # a long last call may have ended, and been reported, between two polls
        if len(grants.times_us) < len(calls):
            raise LayoutError("the child was done before its calls were")
        replies, outputs, inputs = self._read_round(child, staged, reply, request)
        done = Round(plan=request.plan, wall_us=sum(grants.times_us), replies=replies, outputs=outputs, inputs=inputs)
        return SingleCallRound(done, grants.times_us, grants.early, grants.disturbed)

    def _read_round(
        self, child: ChildProcess, staged: Staged, reply: Mapping[str, Any], request: RoundRequest
    ) -> tuple[Sequence[Any], list[list[torch.Tensor]], list[list[torch.Tensor]]]:
        """Return the frozen child's replies, the outputs that the request wants, and their inputs."""
        replies = replies_of(reply, len(request.calls))
        if request.look:
            mark_aliases(child, staged.fd, [claim for item in replies for claim in tensor_claims(item)])
        request.check(replies)
        outputs = [self.fetch(child, tensor_claims(item)) for item in replies[: request.read]]
        inputs = staged.read(len(outputs)) if request.look else []
        child.check_frozen()
        return replies, outputs, inputs

    def _stage(
        self, child: ChildProcess, calls: Sequence[Sequence[torch.Tensor]], link: Link | None, timeout_s: float
    ) -> Staged:
        """Return the child's memory file, mapped there; a new one where these calls do not fit into it."""
        staged = self._staged.get(child)
        if staged is None or not staged.fits(calls, link):
            if staged is None:
                child.add_cleanup(lambda: self._unstage(child))
            self._unstage(child)
            staged = self._staged[child] = Staged(calls, link)
            child.request("cpu_stage", timeout_s=timeout_s, fds=[staged.fd], bytes=staged.bytes)
        return staged

    def _unstage(self, child: ChildProcess) -> None:
        staged = self._staged.pop(child, None)
        if staged is not None:
            staged.close()

    def start_profilers(self, *children: ChildProcess) -> None:
        """Do nothing: plain loops are not profiled here."""

    def release(self, *children: ChildProcess) -> None:
        """Close the children's memory files on both sides."""
        for child in children:
            if child in self._staged:
                self._unstage(child)
                with contextlib.suppress(ChildFault):  # it has ended, or its next request will tell
                    child.request("cpu_release", timeout_s=_RELEASE_S)

    def free_bytes(self) -> int | None:
        return None

    def held_by_others(self) -> int:
        """Return 0: a child's memory has a limit of its own."""
        return 0

    def trim(self) -> None:
        """Do nothing: freed memory returns to the system, or is small."""

    def release_caches(self) -> None:
        self._share(None)

    def least_us(self, written_bytes: int, plan: RoundPlan) -> float | None:
        """Return None: no table gives a CPU's caches and memory speed."""
        return None

    def synchronize(self) -> None:
        """Do nothing: the judge's work on a CPU is done when it returns."""

    def probe(self) -> str:
        """Return "": a process cannot break a CPU."""
        return ""

    def copy_rate_gbs(self) -> float | None:
        if self._copy_rate_gbs is None:
            self._copy_rate_gbs = _copy_rate_gbs()
        return self._copy_rate_gbs

    def close(self) -> None:
        self._share(None)
        for child in list(self._staged):
            self._unstage(child)


@cache
def _may_move_processes() -> bool:
    """Return whether this process may set the affinity of children, which run as another user where it is root."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(encoding="utf-8"), re.M)
    return os.geteuid() != 0 or (found is not None and bool(int(found[1], 16) >> _CAP_SYS_NICE & 1))


class _Sampler:
    """Samples a child at random moments, some thousand times a second.

    A moment comes soon after the child got its core: where others use the core, it would else be stopped before it had
    moved. A sample counts if the child has run since the one before, and had not replied yet. The kernel tells for how
    long it ran only when it is stopped.
    """

    def __init__(self, child: ChildProcess, only_at_us: float | None) -> None:
        self._child = child
        self._only_at = None if only_at_us is None else time.perf_counter() + only_at_us / 1e6
        self._done = False
        self._seen: list[tuple[int, Place]] = []
        self._main: list[int] = []  # the first thread's address in each sample
        self._start_us = self._before_us = child.total_ran_us()
        self._arrivals = 0

    def __call__(self) -> None:
        if self._only_at is not None:
            if not self._done and time.perf_counter() >= self._only_at:
                self._look()
            return  # the caller waits actively
        if self._child.arrivals() == self._arrivals:
            return
        moment = time.perf_counter() + random.uniform(*_GAP_S)
        while time.perf_counter() < moment:  # a judge that sleeps wakes after the round where others use its core
            pass
        self._look()

    def _look(self) -> None:
        found, pid, self._done = self._child.sample(_CODE_BYTES), self._child.pid, True
        if not found.replied and found.ran_us - self._before_us > _HAS_RUN_US:
            self._seen += [(process, place) for (process, _), place in found.places.items()]
            first = found.places.get((pid, str(pid)))
            self._main.append(0 if first is None else first.address)  # 0: it waits for others, or the kernel works
        self._before_us, self._arrivals = found.ran_us, found.arrivals

    def diagnostics(self) -> dict[str, Any]:
        """Return how often any thread was seen in each place ("ran"), with code that no file of this machine's holds
        there ("foreign"); the number of samples ("looks"), how many of them found the first thread in the interpreter,
        and for how long all of the child's processes ran."""
        pid = self._child.pid
        ran, foreign = symbols.count_places(pid, self._seen)
        return {
            "ran": ran,
            "foreign": foreign,
            "looks": len(self._main),
            "interpreted": symbols.count_in_interpreter(pid, self._main),
            "active_us": self._child.total_ran_us() - self._start_us,
        }


def _keep_freed_memory() -> None:
    """Make malloc keep freed memory. The judge compares thousands of tensors of a megabyte, and touching new pages
    takes several times as long as that. Only glibc has the option."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _MALLOC.items():
            mallopt(option, value)


def _copy_rate_gbs() -> float:
    """Copy 64 MiB on one core; return bytes read and written per nanosecond, best of four."""
    source, target = torch.ones(_COPY_BYTES, dtype=torch.uint8), torch.empty(_COPY_BYTES, dtype=torch.uint8)
    best = math.inf
    for _ in range(4):
        start = time.perf_counter_ns()
        target.copy_(source)
        best = min(best, time.perf_counter_ns() - start)
    return 2 * _COPY_BYTES / best


@cache
def _compiler_version() -> str | None:
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    done = subprocess.run([compiler, "--version"], capture_output=True, timeout=10, check=False)
    lines = done.stdout.decode(errors="replace").splitlines()
    return lines[0][:100] if lines else None


@cache
def _cpu_info() -> Mapping[str, str]:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _cpu_name() -> str:
    return _cpu_info().get("model name") or platform.machine()


def _model(info: Mapping[str, str]) -> str | None:
    """Return the CPU's generation, for names that do not tell it: "family 25 model 17, base clock 2400 MHz"."""
    parts = [f"{word} {info[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if info.get(key)]
    if not parts:
        return None
    # The current clock rises and falls; on x86 Linux derives this from the time-stamp counter's, which does not.
    base = info.get("bogomips", "")
    return " ".join(parts) + (f", base clock {float(base) / 2:.0f} MHz" if base.replace(".", "").isdigit() else "")


def _caches(core: int) -> list[str]:
    """Return cache sizes as the kernel reports them: "L1 data 48K", "L2 1024K"."""
    found = []
    for folder in sorted(Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:  # an emulated CPU reports only some of them
            continue
        found.append(f"L{level} {size}" if kind == "Unified" else f"L{level} {kind.lower()} {size}")
    return found


def _vector_flags(info: Mapping[str, str]) -> list[str]:
    flags = info.get("flags", "").split()
    return [flag for flag in flags if flag in ("avx2", "fma", "f16c") or flag.startswith(("avx512", "avx_", "amx"))]
