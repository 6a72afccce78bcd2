"""The judge's side of one NVIDIA GPU.

Inputs lie in exported blocks, expected values and snapshots in the judge's ordinary torch memory, outputs where the
Candidate put them; the judge opens those by handle and copies them device to device. A round's clock runs from before
the fresh inputs are copied into the child's block until the snapshot of its outputs is complete.

`evaluator.child.gpu.calls` tells what repeats of one graph over the same inputs can hide. A round's overhead is
measured on a null Candidate with `replays=1`, because launching an empty graph costs CPU time that a busy GPU hides.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import platform
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from evaluator.child import warpwright_native
from evaluator.child.gpu import chain
from evaluator.child.gpu.device import reserved_bytes
from evaluator.child.protocol import cuda_driver
from evaluator.child.protocol.chain import Link
from evaluator.child.protocol.cuda_driver import Driver, DriverError
from evaluator.comparison.claims import replies_of, tensor_claims
from evaluator.devices import cuda_children
from evaluator.devices.base import PlainLoop, Round, RoundPlan, RoundRequest
from evaluator.devices.cuda_facts import Nvml, NvmlMissing, bandwidth_of, copy_rate_gbs, floor_us, kernel_limits
from evaluator.devices.cuda_memory import (
    Block,
    CudaGrant,
    Peer,
    RetiredBlocks,
    ShownBlocks,
    Snapshot,
    SpareBlocks,
    clone,
    fill,
    mark_aliases,
)
from evaluator.devices.cuda_plan import ROUND_US, CallSize, plan_replays, plan_rotation
from evaluator.devices.cuda_timed import TimedChild
from evaluator.devices.pools_ahead import PoolsAhead, gpu_pool
from evaluator.errors import CageError, ChildFault
from evaluator.languages import optional_versions
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.process import ChildProcess
from evaluator.types import Clock, Device, DeviceKind, Environment

_RELEASE_S, _PROFILER_S = 20.0, 60.0
_PLAIN_US, _PLAIN_TRIES = 3_000.0, 2  # of the shorter run of plain replays
_LEAST_CALL_US = 0.5
_LEAST_US = 1.0  # noise never makes a time that is not positive
_PROBE_ELEMENTS = 1 << 20
_FREE_SHARE = 1 / 4  # of the GPU's memory; where less is free, torch's cache is emptied
_HOARD_SHARE = 1 / 8  # of the GPU's memory that torch's cache may hold; children need the rest


class CudaBackend:
    """One GPU, by its ordinal among the visible ones. Not thread-safe. Raises CageError without one."""

    kind = DeviceKind.CUDA
    threads = 1
    round_us = ROUND_US
    batch_bytes = 1 << 30

    def __init__(
        self, ordinal: int = 0, *, cpus: frozenset[int] | None = None, ahead: PoolsAhead | None = None
    ) -> None:
        why = cuda_driver.available()
        if why or not torch.cuda.is_available():
            raise CageError(f"no CUDA device can be used: {why or 'this PyTorch has no CUDA'}")
        self.torch_device = torch.device("cuda", ordinal)
        torch.cuda.set_device(self.torch_device)
        torch.cuda.current_stream().synchronize()  # makes the primary context
        self._ordinal, self._cpus, self._ahead = ordinal, cpus, ahead
        self._driver = Driver(ordinal)
        self._forbid_persisting_l2()
        self._properties = torch.cuda.get_device_properties(ordinal)
        self._uuid = f"GPU-{self._properties.uuid}"
        self._nvml = _nvml(self._uuid)
        self._retired = RetiredBlocks()
        self._spare = SpareBlocks(self._retired)
        self._shown = ShownBlocks()
        self._timed: dict[ChildProcess, TimedChild] = {}
        self._lasting: dict[ChildProcess, Peer] = {}
        self._looked_after: weakref.WeakSet[ChildProcess] = weakref.WeakSet()
        self._staged: tuple[object, Callable[[], TimedChild | None]] = None, lambda: None  # by the last round
        self._copy_rate_gbs: float | None = None

    def describe(self) -> Device:
        """Return the GPU's name, UUID and facts (NVML's where it answers)."""
        properties = self._properties
        name = str(properties.name)
        facts: dict[str, Any] = {
            "ordinal": self._ordinal,
            "capability": f"{properties.major}.{properties.minor}",
            "sms": properties.multi_processor_count,
            **kernel_limits(properties),
            "memory_bytes": properties.total_memory,
            "l2_bytes": properties.L2_cache_size,
            "bandwidth_bytes_per_s": bandwidth_of(name),
            **(self._nvml.facts() if self._nvml else {"nvml": "does not answer"}),
        }
        return Device(kind=self.kind, name=name, uuid=self._uuid, facts=facts)

    def environment(self) -> Environment:
        return Environment(
            python=platform.python_version(),
            torch=torch.__version__,
            triton=_triton_version(),
            cuda=torch.version.cuda,
            driver=self._nvml.facts()["driver"] if self._nvml else None,
            languages=optional_versions(),
        )

    def pool(
        self, environment: Mapping[str, str] | None = None, *, compiler: bool = False, preload: Sequence[str] = ()
    ) -> ChildPool:
        """Return caged children that see this GPU alone, started already or now."""
        target, ahead = warpwright_native._cuda_target(), self._ahead if self._cpus is None else None
        return gpu_pool(
            self._uuid, target, environment or {}, preload=preload, compiler=compiler, cpus=self._cpus, ahead=ahead
        )

    @property
    def compiles_beside(self) -> bool:
        return False  # autotuning runs kernels

    def place(self, child: ChildProcess) -> None:
        """Do nothing: children compile where they are timed."""

    def build_environment(self) -> Mapping[str, str]:
        return cuda_children.build_environment(warpwright_native._cuda_target())

    def grant(self, tensors: Sequence[torch.Tensor]) -> CudaGrant:
        return self.grant_calls([tensors])

    def grant_calls(self, calls: Sequence[Sequence[torch.Tensor]], *, ours: bool = False) -> CudaGrant:
        block = (self._spare.take(calls) if ours else None) or self._block(calls)
        fill(block.calls, calls)
        torch.cuda.synchronize(self.torch_device)
        return CudaGrant(block, self._shown, self._spare.add if ours else self._retired.add)

    def fetch(
        self, child: ChildProcess, claims: Sequence[Mapping[str, Any]], *, ours: bool = False
    ) -> list[torch.Tensor]:
        peer = Peer(self._driver, self._shown.to(child))
        lasting = self._lasting_of(child) if ours else peer
        try:
            copies = [clone((lasting if claim.get("lasting") is True else peer).tensor(claim)) for claim in claims]
            torch.cuda.synchronize(self.torch_device)
        finally:
            peer.close()  # memory that stays open here cannot be freed there
        return copies

    def _lasting_of(self, child: ChildProcess) -> Peer:
        """Return the part of a child's memory that stays open as long as the child lives."""
        if child not in self._lasting:
            self._lasting[child] = Peer(self._driver)
            child.add_cleanup(lambda: self._forget_lasting(child))
        return self._lasting[child]

    def _forget_lasting(self, child: ChildProcess) -> None:
        self._driver.make_current()  # children end in any thread
        self._lasting.pop(child).close()

    def plan(
        self, call_us: float, call_bytes: int, output_bytes: int, round_us: float, parameter_bytes: int = 0
    ) -> RoundPlan:
        """Plan a round. `output_bytes` counts the float64 expectation, four times a half-precision output."""
        size = CallSize(inputs=call_bytes, outputs=output_bytes // 4, parameters=parameter_bytes)
        rotation = plan_rotation(size, int(self._properties.L2_cache_size))
        replays = plan_replays(rotation.calls * call_us, round_us)
        return RoundPlan(calls=rotation.calls, replays=replays, instances=rotation.instances)

    def prepare(self, child: ChildProcess, request: RoundRequest, *, graph: bool = True) -> Clock:
        """Map the inputs of all calls into the child, let it warm up and capture. Return `Clock.CALLS` where it cannot
        capture, and with `graph` false. The child sees the inputs and the chain's coefficients here; timed rounds
        bring others."""
        calls, link, instances = request.calls, request.link, request.plan.instances
        self.release(child)
        block = self._block(calls, link)
        fill(block.calls, calls)
        block.put_link(block.raw, link)
        torch.cuda.synchronize(self.torch_device)
        staging = torch.empty(block.size, dtype=torch.uint8, device=self.torch_device)
        asked = {
            "grant": block.fields(), "tree": request.tree, "instances": instances, "graph": graph,
            "link": None if link is None or block.link_layout is None else link.to_json(block.link_layout),
        }  # fmt: skip
        peer = Peer(self._driver, {block.handle: block})
        timed = TimedChild(block, staging, peer, instances, graph)
        self._timed[child] = timed
        if child not in self._looked_after:
            self._looked_after.add(child)
            child.add_cleanup(lambda: self._forget_timed(child))
        step = "" if asked["link"] is None else _step()
        reply = child.request("cuda_prepare", timeout_s=request.timeout_s, step=step, **asked)
        timed.clock = Clock.GRAPH if graph and reply.get("captured") is True else Clock.CALLS
        timed.why_not = str(reply.get("why_not") or "")[:500]
        timed.copies = _number(reply.get("instances"))
        timed.replies = replies_of(reply, timed.block.count)
        self._take_claims(timed)
        return timed.clock

    def run_round(self, child: ChildProcess, request: RoundRequest) -> Round:
        """Run one round and read all of its outputs. Captured outputs are poisoned first. This child's next round
        overwrites the snapshot in `outputs`. A child that was prepared for another number of calls is prepared again,
        on the inputs given here, so the first round after a change of plan does not count."""
        calls, plan, link = request.calls, request.plan, request.link
        timed = self._timed.get(child)
        if timed is None or not timed.fits(len(calls), plan.instances, link):
            self.prepare(child, request, graph=timed is None or timed.graph)
            timed = self._timed[child]
        self._stage(timed, calls)
        timed.block.put_link(timed.staging, link)
        if timed.clock is Clock.GRAPH:
            timed.check_replies(request.check)
            timed.snapshot.poison()
        torch.cuda.synchronize(self.torch_device)
        before = time.perf_counter_ns()
        timed.block.raw.copy_(timed.staging)
        torch.cuda.synchronize(self.torch_device)
        asked = time.perf_counter_ns()
        reply = child.request("cuda_round", timeout_s=request.timeout_s, replays=plan.replays)
        answered = time.perf_counter_ns()
        if timed.clock is Clock.CALLS:  # in the clock: the child could work until its outputs are read
            timed.replies = replies_of(reply, timed.block.count)
            request.check(timed.replies)
            self._take_claims(timed)
        timed.snapshot.take()
        torch.cuda.synchronize(self.torch_device)
        after = time.perf_counter_ns()
        child.freeze()  # until its next request, so that it does not disturb others
        diagnostics = {
            "write_us": (asked - before) / 1e3,
            "child_us": (answered - asked) / 1e3,
            "snapshot_us": (after - answered) / 1e3,
            "instances": timed.copies,
            "not_captured": timed.why_not,
            **self._clocks(),
        }
        return Round(
            plan=plan,
            wall_us=(after - before) / 1e3,
            device_us=_number(reply.get("device_us")),
            replies=timed.replies,
            outputs=self._per_call(timed),
            inputs=timed.inputs() if request.look else (),
            clock=timed.clock,
            diagnostics=diagnostics,
        )

    def _stage(self, timed: TimedChild, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        """Write inputs to the staging copy: in one piece where the child before has the same ones laid out alike."""
        known, source = self._staged[0], self._staged[1]()
        if known is not calls or source is None or not source.block.is_like(timed.block):
            fill(timed.staged, calls)
        elif source is not timed:
            end = timed.block.pitch * timed.block.count
            timed.staging[:end].copy_(source.staging[:end])
        self._staged = calls, weakref.ref(timed)

    def run_plainly(
        self, child: ChildProcess, request: RoundRequest, *, call_us: float, profile: bool = False
    ) -> PlainLoop | None:
        """Implement `DeviceBackend.run_plainly`: the difference between a long and a short run of replays, so that what
        asking costs is in neither. The first replay does not count."""
        timed = self._timed.get(child)
        if timed is None or timed.block.count != len(request.calls):  # a check has prepared it for other rounds
            self.prepare(child, request, graph=timed is None or timed.graph)
            timed = self._timed[child]
        fill(timed.block.calls, request.calls)
        torch.cuda.synchronize(self.torch_device)
        count, timeout_s = timed.block.count, request.timeout_s

        def ask(replays: int, *, profile: bool = False) -> Mapping[str, Any]:
            return child.request("cuda_plain", timeout_s=timeout_s, replays=replays, profile=profile)

        def wall_us(replays: int) -> float:
            start = time.perf_counter_ns()
            ask(replays)
            return (time.perf_counter_ns() - start) / 1e3

        few = plan_replays(count * max(call_us, _LEAST_CALL_US), _PLAIN_US)
        if ask(1).get("alike") is not True:
            return None
        short_us, long_us = (min(wall_us(replays) for _ in range(_PLAIN_TRIES)) for replays in (few, 3 * few))
        kernels_us = _number(ask(1, profile=True).get("kernels_us")) if profile else None
        child.freeze()
        return PlainLoop(max(long_us - short_us, _LEAST_US) / (2 * few * count), kernels_us)

    def start_profilers(self, *children: ChildProcess) -> None:
        _ask_all(children, "cuda_profiler", _PROFILER_S)
        for child in children:
            with contextlib.suppress(ChildFault):
                child.freeze()  # so that it does not disturb the other's loops

    def release(self, *children: ChildProcess) -> None:
        """Release the graphs, outputs and mappings of the inputs, in all children at once, since each takes 50 ms."""
        timed = [child for child in children if child in self._timed]
        for child in timed:
            self._forget_timed(child)
        _ask_all(timed, "cuda_release", _RELEASE_S)

    def free_bytes(self) -> int | None:
        free, _ = self._driver.memory()
        reserved, allocated = reserved_bytes(self.torch_device)
        return free + reserved - allocated

    def held_by_others(self) -> int:
        free, total = self._driver.memory()
        return max(0, total - free - reserved_bytes(self.torch_device)[0])

    def trim(self) -> None:
        free, total = self._driver.memory()
        if free < _FREE_SHARE * total:
            torch.cuda.empty_cache()

    def release_caches(self) -> None:
        self._spare.close()
        self._retired.close()
        torch.cuda.empty_cache()

    def least_us(self, written_bytes: int, plan: RoundPlan) -> float | None:
        name, l2_bytes = str(self._properties.name), int(self._properties.L2_cache_size)
        return floor_us(written_bytes, plan.calls, l2_bytes, bandwidth_of(name))

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch_device)

    def probe(self) -> str:
        """Write some megabytes, add them up and copy the sum back; a lost context raises at once."""
        try:
            ones = torch.ones(_PROBE_ELEMENTS, dtype=torch.int32, device=self.torch_device)
            total = int(ones.cumsum(0, dtype=torch.int64)[-1])
            torch.cuda.synchronize(self.torch_device)
        except RuntimeError as error:
            return f"the GPU does not answer: {error}"[:500]
        return "" if total == _PROBE_ELEMENTS else f"the GPU adds {_PROBE_ELEMENTS} ones up to {total}"

    def copy_rate_gbs(self) -> float | None:
        if self._copy_rate_gbs is None:
            self._copy_rate_gbs = copy_rate_gbs(self.torch_device)
        return self._copy_rate_gbs

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        for child in list(self._timed):
            self._forget_timed(child)
        for peer in self._lasting.values():
            peer.close()
        self._spare.close()
        self._retired.close()

    def _block(self, calls: Sequence[Sequence[torch.Tensor]], link: Link | None = None) -> Block:
        """Return a block for these tensors. Free cached memory where too little is left."""
        reserved, allocated = reserved_bytes(self.torch_device)
        if reserved - allocated > _HOARD_SHARE * self._properties.total_memory:
            torch.cuda.empty_cache()
        try:
            return Block(self._driver, calls, link)
        except CageError:
            self.release_caches()
            return Block(self._driver, calls, link)

    def _forget_timed(self, child: ChildProcess) -> None:
        timed = self._timed.pop(child, None)
        self._staged = None, lambda: None
        if timed is not None:
            torch.cuda.synchronize(self.torch_device)
            timed.peer.close()
            self._retired.add(timed.block)

    @staticmethod
    def _take_claims(timed: TimedChild) -> None:
        """Plan the snapshot of the outputs that each call claims. Raise LayoutError for false claims."""
        timed.claims = [tensor_claims(value) for value in timed.replies]
        mark_aliases(timed.block, [claim for call in timed.claims for claim in call])
        timed.snapshot = Snapshot(timed.peer, [claim for call in timed.claims for claim in call])

    @staticmethod
    def _per_call(timed: TimedChild) -> list[list[torch.Tensor]]:
        tensors = iter(timed.snapshot.tensors)
        return [[next(tensors) for _ in call] for call in timed.claims]

    def _clocks(self) -> dict[str, Any]:
        return {"clocks": asdict(self._nvml.clocks())} if self._nvml else {}

    def _forbid_persisting_l2(self) -> None:
        try:
            self._driver.forbid_persisting_l2()
        except DriverError:  # GPUs before Ampere have none
            return


def _ask_all(children: Sequence[ChildProcess], operation: str, timeout_s: float) -> None:
    """Send a request to all children, then wait for their replies. A child that fails tells so at its next request."""
    asked = []
    for child in children:
        with contextlib.suppress(ChildFault):
            asked.append((child, child.send_request(operation, timeout_s=timeout_s)))
    for child, one in asked:
        with contextlib.suppress(ChildFault):
            child.receive_reply(one)


def _nvml(uuid: str) -> Nvml | None:
    try:
        return Nvml(uuid)
    except NvmlMissing:
        return None


def _triton_version() -> str | None:
    try:
        import triton  # noqa: PLC0415  Triton is optional, and slow to import
    except ImportError:
        return None
    return str(triton.__version__)


@functools.cache
def _step() -> str:
    """Return the kernel of the chain's step in base64, compiled once for all children; "" where that fails."""
    return base64.b64encode(chain.image() or b"").decode()


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
