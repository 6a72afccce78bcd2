"""What a device backend is to the judge: how memory is granted to a child, how results are read, how rounds are timed.

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
    """Judge-owned memory made ready for one child, not yet visible to it: sending `fields` and `fds` makes it so."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """What the child is told."""

    @property
    def fds(self) -> Sequence[int]:
        """Descriptors that travel beside it."""

    def read_back(self) -> list[list[torch.Tensor]]:
        """What lies in the inputs after a run, per call, where the grant was one child's alone."""

    def mark_aliases(self, child: ChildProcess, claims: Sequence[dict[str, Any]]) -> None:
        """Write into each claim, as "alias", whether that tensor lies in the granted memory."""

    def close(self) -> None:
        """Free the judge's side, possibly twice. The child's mapping lives until the child drops it or ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """`calls` distinct input sets a round; a device that replays a captured graph runs them `replays` times over.
    `instances` copies of the module take turns where its weights would stay in a cache otherwise."""

    calls: int
    replays: int = 1
    instances: int = 1

    @property
    def executions(self) -> int:
        return self.calls * self.replays


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One timed round. `wall_us` is the judge's clock: from before any input byte was visible to the child until its
    outputs could no longer change. `replies` holds, per call, what the child says it returned (see `child.ops`),
    `outputs` the snapshot of every tensor leaf, per call that was read, in the judge's memory; `inputs`, where that was
    asked for, what lay in the inputs of those calls afterwards. A CPU's child ran for `ran_us`, and waited for its core
    for `waited_us`."""

    plan: RoundPlan
    wall_us: float
    ran_us: float = 0.0
    waited_us: float = 0.0
    replies: Sequence[Any]
    outputs: Sequence[Sequence[torch.Tensor]]
    inputs: Sequence[Sequence[torch.Tensor]] = ()
    clock: Clock = Clock.CALLS
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EarlyRead:
    """What some elements of an output held when its call had just returned: output `leaf`, the bytes in `data` at each
    of `offsets` from its start."""

    leaf: int
    offsets: Sequence[int]
    data: bytes


@dataclass(frozen=True, slots=True)
class SingleCallRound:
    """Calls that came one at a time: the time of each, and what was read of each before its clock stopped. The whole of
    their outputs is in `round`, whose own time means nothing."""

    round: Round
    times_us: Sequence[float]
    early: Sequence[EarlyRead]


class DeviceBackend(Protocol):
    """The judge's side of one device."""

    kind: DeviceKind
    round_us: float  # the least net time of a round while many Candidates are compared; confirming takes longer ones
    batch_bytes: int  # of outputs and inputs of rounds that are kept, to be verified together
    torch_device: torch.device

    def describe(self) -> Device:
        """Name, uuid (keys the lock) and facts."""

    def environment(self) -> Environment:
        """The versions that a result on this device depends on."""

    def pool(self, environment: Mapping[str, str] | None = None, *, compiler: bool = False) -> ChildPool:
        """A new pool of caged children for this device, pinned where timing wants them. With `compiler` they may have
        torch's compiler loaded when they start. The caller closes it."""

    def build_environment(self) -> Mapping[str, str]:
        """Variables for children that compile for this device and do not use it."""

    def grant(self, tensors: Sequence[torch.Tensor]) -> Grant:
        """Copy tensors into fresh memory that can be shown to a child."""

    def grant_calls(self, calls: Sequence[Sequence[torch.Tensor]], *, ours: bool = False) -> Grant:
        """Copy the input tensors of several calls, all of one layout, into fresh memory. With `ours` only children
        that run nothing of a Candidate's will see it, so that it may be one that such a child was shown before."""

    def fetch(
        self, child: ChildProcess, claims: Sequence[Mapping[str, Any]], *, ours: bool = False
    ) -> list[torch.Tensor]:
        """Snapshot the tensors that a child claims to have. A child that runs nothing of a Candidate's (`ours`) is
        believed where it says that memory lasts. Raises `child.spec.LayoutError` for false claims."""

    def plan(
        self, call_us: float, call_bytes: int, output_bytes: int, round_us: float, parameter_bytes: int = 0
    ) -> RoundPlan:
        """How many distinct calls (of `call_bytes` fresh input each) make a round of at least `round_us`."""

    def prepare(
        self,
        child: ChildProcess,
        calls: Sequence[Sequence[torch.Tensor]],
        *,
        tree: Any,
        timeout_s: float,
        graph: bool = True,
        instances: int = 1,
        link: Link | None = None,
    ) -> Clock:
        """Bring a constructed child to where it is timed from: warm-up, and capture where the device has graphs and
        `graph` allows it. `link` chains the calls as in a round; its coefficients are seen by the child here."""

    def run_round(
        self,
        child: ChildProcess,
        calls: Sequence[Sequence[torch.Tensor]],
        plan: RoundPlan,
        *,
        tree: Any,
        check: Callable[[Sequence[Any]], None],
        timeout_s: float,
        read: int | None = None,
        link: Link | None = None,
        look: bool = False,
        watch: bool = False,
    ) -> Round:
        """One round on the judge's clock. `calls` are the input tensors of each distinct call, of one layout; `tree`
        says where they go among the arguments (`child.spec.write_tree`). `check` is given the replies before any
        output is read, and raises when they are not what a call may return. The outputs of the first `read` calls are
        wanted (None: of all); a device may give more. `link` chains the calls (`child.chain`): the child makes its step
        before every call but the first. With `look` what lies in their inputs afterwards is wanted, too. With `watch`
        the diagnostics have, as "ran", how often the child was seen in which function (where the device can tell); such
        a round's time means nothing."""

    def release(self, child: ChildProcess) -> None:
        """Forget what `prepare` made for a child; it may be prepared again."""

    def free_bytes(self) -> int | None:
        """Device memory that is free now; None where memory is no concern."""

    def held_by_others(self) -> int:
        """Bytes of device memory that are in use and not this process's: all of its children have ended."""

    def trim(self) -> None:
        """Give back what is kept of the device's memory for speed alone, where others may be short of it."""

    def release_caches(self) -> None:
        """Give back memory that is kept for later. No child may be alive that was shown any."""

    def least_us(self, written_bytes: int, plan: RoundPlan) -> float | None:
        """Less than this per call is impossible for calls that write so many bytes each; None where nothing is known.
        Only what cannot have stayed in a cache counts, at the speed that the datasheet promises."""

    def synchronize(self) -> None:
        """Wait for what the judge itself has the device do."""

    def probe(self) -> str:
        """After a child's fault: does the device still compute what it should? "" or what is wrong, in words."""

    def copy_rate_gbs(self) -> float | None:
        """What a plain streaming copy attains here, in GB/s (read plus write): for reports, never for refusals."""

    def close(self) -> None:
        """Free what the backend holds."""


@runtime_checkable
class SingleCallBackend(Protocol):
    """A device on which calls can also be made to come one at a time."""

    @property
    def judge_has_own_core(self) -> bool:
        """Whether judge and child can run at the same time: else nothing can be told from such calls."""

    def run_single_calls(
        self,
        child: ChildProcess,
        calls: Sequence[Sequence[torch.Tensor]],
        layouts: Sequence[TensorSpec],
        *,
        tree: Any,
        check: Callable[[Sequence[Any]], None],
        timeout_s: float,
        read: int,
        look: bool,
    ) -> SingleCallRound:
        """As `DeviceBackend.run_round`, but a call's inputs are written when the call before it has returned. `layouts`
        are those of a call's output tensors, as far as they are known."""
