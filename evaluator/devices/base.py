"""The protocol of a device backend: grant memory to a child, read its results, time its rounds.

A new device is one new file here and one in `evaluator/child/`. Everything above (oracle, limits, statistics, verdicts)
is written against this protocol alone and works on plain torch tensors in the judge's own memory (`torch_device`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch

from evaluator.child.protocol.chain import Link
from evaluator.child.protocol.layout import TensorSpec
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.process import ChildProcess
from evaluator.types import Clock, Device, DeviceKind, Environment


class Grant(Protocol):
    """Judge-owned memory made ready for one child. Sending `fields` and `fds` makes it visible."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The request fields for the child."""

    @property
    def fds(self) -> Sequence[int]:
        """The descriptors that are sent with them."""

    def read_back(self) -> list[list[torch.Tensor]]:
        """Return the inputs of each call as they are after a run, where the grant was one child's alone."""

    def mark_aliases(self, child: ChildProcess, claims: Sequence[dict[str, Any]]) -> None:
        """Set "alias" in each claim to whether that tensor lies in the granted memory."""

    def close(self) -> None:
        """Free the judge's side; a second call does nothing. The child's mapping lives until the child drops it or
        ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """The size of a round: `calls` distinct input sets, which a device with graphs runs `replays` times over. Calls
    rotate over `instances` copies of the module where its weights would stay in a cache otherwise."""

    calls: int
    replays: int = 1
    instances: int = 1

    @property
    def executions(self) -> int:
        return self.calls * self.replays


def accept(replies: Sequence[Any]) -> None:
    """Accept any replies: the `check` of a round whose child runs nothing of a Candidate's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRequest:
    """One round of calls: the inputs, their places among the arguments, and the outputs that are wanted.

    Attributes:
        calls: The input tensors of each distinct call, all of one layout.
        plan: The size of the round.
        tree: The places of the tensors among the arguments (`child.protocol.layout.write_tree`).
        timeout_s: Seconds until the child is ended.
        check: Gets the replies before any output is read; it raises where they are not what a call may return.
        read: The outputs of so many first calls are wanted (None: of all); a device may give more.
        link: Chains the calls (`child.protocol.chain`): the child takes its step before every call but the first.
        look: Read those calls' inputs afterwards, too.
        watch: Count, as "ran" in the diagnostics, how often the child was seen in each function, where the device can
            tell. Such a round's time means nothing.
        watch_at_us: Look once, so long after the start (None: all the time): a child may notice that it was stopped.
    """

    calls: Sequence[Sequence[torch.Tensor]]
    plan: RoundPlan
    tree: Any
    timeout_s: float
    check: Callable[[Sequence[Any]], None] = accept
    read: int | None = None
    link: Link | None = None
    look: bool = False
    watch: bool = False
    watch_at_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One timed round.

    `wall_us` is on the judge's clock, from before any input byte was visible to the child until its outputs could no
    longer change. `replies` holds, per call, the child's claims about its return value (see `child.ops`). `outputs`
    holds snapshots of every tensor leaf, per call that was read, in the judge's memory, and `inputs`, where asked for,
    those calls' inputs afterwards. A CPU's child ran for `ran_us` and waited for its core for `waited_us`. `device_us`
    is the part that a GPU's own clock counted, as the harness in the child reports it.
    """

    plan: RoundPlan
    wall_us: float
    ran_us: float = 0.0
    waited_us: float = 0.0
    device_us: float | None = None
    replies: Sequence[Any]
    outputs: Sequence[Sequence[torch.Tensor]]
    inputs: Sequence[Sequence[torch.Tensor]] = ()
    clock: Clock = Clock.CALLS
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EarlyRead:
    """Elements of an output, read when its call had just returned: the output `leaf`, and `data` at each of `offsets`
    bytes from its start."""

    leaf: int
    offsets: Sequence[int]
    data: bytes


@dataclass(frozen=True, slots=True)
class SingleCallRound:
    """Calls that came one at a time: the time of each, and the elements read before its clock stopped. `round` has all
    of their outputs; its own time means nothing. In `disturbed` calls other processes had the judge's or the child's
    core."""

    round: Round
    times_us: Sequence[float]
    early: Sequence[EarlyRead]
    disturbed: Sequence[bool]


@dataclass(frozen=True, slots=True)
class PlainLoop:
    """Calls as a user makes them, without chain and snapshots: microseconds a call on the judge's clock.

    `kernels_us` is the device time of a call's kernels where the child's profiler tells it: a claim.
    """

    call_us: float
    kernels_us: float | None = None


class DeviceBackend(Protocol):
    """The judge's side of one device."""

    kind: DeviceKind
    round_us: float  # least net time of a round
    batch_bytes: int  # of outputs and inputs that are kept of rounds, to verify them together
    torch_device: torch.device
    threads: int  # of the CPU, that a child's torch and OpenMP use

    @property
    def compiles_beside(self) -> bool:
        """Return whether children that compile need not stop while others are timed."""

    def place(self, child: ChildProcess) -> None:
        """Move a child that has compiled to where it is timed. Raise CageError."""

    def describe(self) -> Device:
        """Return the device's name, uuid (keys the lock) and facts."""

    def environment(self) -> Environment:
        """Return the versions that a result on this device depends on."""

    def pool(
        self, environment: Mapping[str, str] | None = None, *, compiler: bool = False, preload: Sequence[str] = ()
    ) -> ChildPool:
        """Return a new pool of caged children for this device, pinned for timing. With `compiler` they may have torch's
        compiler loaded when they start, and are timed only after `place`. `preload` names further modules to import
        before children start. The caller closes it."""

    def build_environment(self) -> Mapping[str, str]:
        """Return variables for children that compile for this device without using it."""

    def grant(self, tensors: Sequence[torch.Tensor]) -> Grant:
        """Copy tensors into fresh memory that can be shown to a child."""

    def grant_calls(self, calls: Sequence[Sequence[torch.Tensor]], *, ours: bool = False) -> Grant:
        """Copy the input tensors of several calls, all of one layout, into fresh memory. With `ours` only children that
        run nothing of a Candidate's will see it, so memory that such a child was shown before may be used again."""

    def fetch(
        self, child: ChildProcess, claims: Sequence[Mapping[str, Any]], *, ours: bool = False
    ) -> list[torch.Tensor]:
        """Snapshot the tensors that a child claims to have. A child that runs nothing of a Candidate's (`ours`) is
        trusted when it says that memory lasts. Raise `child.protocol.layout.LayoutError` for false claims."""

    def plan(
        self, call_us: float, call_bytes: int, output_bytes: int, round_us: float, parameter_bytes: int = 0
    ) -> RoundPlan:
        """Plan a round of at least `round_us`, of distinct calls with `call_bytes` of fresh input each."""

    def prepare(self, child: ChildProcess, request: RoundRequest, *, graph: bool = True) -> Clock:
        """Prepare a constructed child for rounds like this one: warm up, and capture where the device has graphs and
        `graph` allows it. The child sees the coefficients of `request.link` here."""

    def run_round(self, child: ChildProcess, request: RoundRequest) -> Round:
        """Run one round on the judge's clock."""

    def run_plainly(
        self, child: ChildProcess, request: RoundRequest, *, call_us: float, profile: bool = False
    ) -> PlainLoop | None:
        """Time a child's calls, each of about `call_us`, in a loop as a user writes it, or in plain replays where calls
        are captured. Nothing is verified: for comparison only. With `profile` a device whose profiler works tells the
        time of the kernels alone. None where the device has no room for it."""

    def start_profilers(self, *children: ChildProcess) -> None:
        """Load the profiler in all of these children at once, since that takes seconds in each."""

    def release(self, *children: ChildProcess) -> None:
        """Forget what `prepare` made for children; they may be prepared again."""

    def free_bytes(self) -> int | None:
        """Return the free device memory; None where memory is no concern."""

    def held_by_others(self) -> int:
        """Return the bytes of device memory that other processes use, when all children of this one have ended."""

    def trim(self) -> None:
        """Free cached device memory where other processes may be short of it."""

    def release_caches(self) -> None:
        """Free memory that is kept for later. No child may be alive that was shown any."""

    def least_us(self, written_bytes: int, plan: RoundPlan) -> float | None:
        """Return a lower bound of the time of a call that writes so many bytes; None where none is known. Only bytes
        that cannot have stayed in a cache count, at datasheet speed."""

    def synchronize(self) -> None:
        """Wait for the judge's own work on the device."""

    def probe(self) -> str:
        """Check after a child's fault that the device still computes correctly. Return "" or the fault."""

    def copy_rate_gbs(self) -> float | None:
        """Return the rate of a plain streaming copy in GB/s (read plus write): for reports, never for refusals."""

    def close(self) -> None:
        """Free everything that the backend holds."""


@runtime_checkable
class SingleCallBackend(Protocol):
    """A device that can also run calls one at a time."""

    @property
    def judge_has_own_core(self) -> bool:
        """Return whether judge and child can run at the same time; without that, single calls tell nothing."""

    def run_single_calls(
        self, child: ChildProcess, request: RoundRequest, layouts: Sequence[TensorSpec]
    ) -> SingleCallRound:
        """Run a round as `DeviceBackend.run_round`, unchained, but write a call's inputs only after the call before it
        has returned. `layouts` are those of a call's output tensors, as far as they are known."""
