"""Drive a child that serves one module: a reference, a Candidate, or a Baseline."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch

from evaluator.cage.policy import Limits
from evaluator.child.protocol.layout import LayoutError, TensorSpec, UnjudgedTensorError
from evaluator.comparison.claims import (
    check_tensor,
    lazy_reason,
    replies_of,
    tensor_claims,
    unjudged_leaf,
    unjudged_reason,
)
from evaluator.devices.base import DeviceBackend, Grant
from evaluator.errors import ChildError, ChildFault
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.prestart import PrestartPool
from evaluator.sandbox.process import ChildProcess
from evaluator.sandbox.setup import set_up

_CANDIDATE_FILE = "candidate.py"
_LOAD_S, _STATE_S = 60.0, 20.0

Result = tuple[Any, list[torch.Tensor]]  # what a call of the reference is said to return, and its tensors


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that a recipe made. `tree` places each of `tensors` among them (`protocol.layout.write_tree`)."""

    tree: Any
    tensors: tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class Lifting:
    """The way to run a reference in float64.

    `shake` perturbs its sums as rounding to that unit would; `everywhere` perturbs all other arithmetic as well.
    `weights` names a dtype to round the weights to (`reference.rounding`). With `own_constants`, values that depend on
    no input or parameter stay as the reference computes them (`reference.float64`).
    """

    shake: float = 0.0
    everywhere: bool = False
    weights: str = ""
    own_constants: bool = False


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A parameter or buffer as a child describes it."""

    name: str
    claim: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.claim.get("shape", ()))


@dataclass(frozen=True, slots=True)
class StateNames:
    """Parameters and buffers in registration order."""

    parameters: tuple[NamedTensor, ...]
    buffers: tuple[NamedTensor, ...]


@dataclass(frozen=True, slots=True)
class RunReply:
    """The results of a run and the inputs that it changed: claims, one entry per call."""

    replies: Sequence[Any]
    mutated: Sequence[Sequence[Mapping[str, Any]]]
    grant: Grant
    wall_us: float
    kept: bool


class Subject:
    """One child with one module in it. A context manager; closing ends the child."""

    construct_s = 20.0  # limit for building a module

    def __init__(self, child: ChildProcess, backend: DeviceBackend, kind: str) -> None:
        self.child, self.backend, self.kind = child, backend, kind
        self.yield_device: Callable[[], None] = lambda: None  # called before long work (`DeviceSharing`)
        self.selects: bool | None = None  # whether a reference uses any of SELECTION_OPERATIONS; None: not known yet
        self.left_out: Collection[str] = ()  # cases that a reference does not survive (`sizes.LeftOut`)
        self.value_sets: Counter[str] = Counter()  # of a reference: turns of each at varied sizes (`values.in_turn`)
        self.dimensions: Mapping[str, int] | None = None  # of a reference (`oracle.dimensions`); None: not known yet
        self.nontrivial_buffers: set[str] = set()  # of a reference: not all zeros or ones when they were made, or kept
        self.state_bytes: dict[str, int] = {}  # of a reference's parameters and buffers that a call reads, by its sizes
        self.positive_buffers: set[str] | None = None  # of a reference: values below zero make NaN; None: not known yet

    @classmethod
    def start(
        cls,
        pool: ChildPool,
        backend: DeviceBackend,
        source: str,
        kind: str,
        *,
        files: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
        load_s: float = _LOAD_S,
        prestarted: PrestartPool | None = None,
    ) -> Self:
        """Start a child that has loaded `source`, or take one of `prestarted`.

        `kind` is "reference", "candidate" or "null". Raise ChildFault.
        """
        needs = {"reference": ["Model", "get_inputs"], "candidate": ["ModelNew"], "null": []}[kind]
        content = {_CANDIDATE_FILE: source.encode("utf-8", "surrogatepass"), **(files or {})}
        child_ready = prestarted.take(kind, content) if prestarted is not None else None
        child = child_ready or pool.start(name=kind, files=content, limits=limits)
        subject = cls(child, backend, kind)
        try:
            if child_ready is None:
                set_up(child, str(backend.torch_device), backend.threads)
            if kind != "null":
                child.request("load", timeout_s=load_s, path=_CANDIDATE_FILE, name="candidate", needs=needs)
        except BaseException:
            child.close()
            raise
        return subject

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.child.close()

    def kernels(self) -> list[dict[str, Any]]:
        """Return registers, shared memory and spills of the kernels compiled so far: claims, for reports."""
        found = _list(self.child.request("kernels", timeout_s=20.0).get("kernels"))
        return [kernel for kernel in found if isinstance(kernel, dict)]

    def generated(self) -> str:
        """Return the heart of what torch.compile generated here: a claim, for reports; "" for none."""
        try:
            code = self.child.request("generated", timeout_s=20.0).get("code")
        except ChildError:
            return ""
        return code if isinstance(code, str) else ""

    def recipe(self, function: str, sizes: Mapping[str, Any], seed: int, *, timeout_s: float = 20.0) -> Arguments:
        """Return what the reference's `get_inputs` or `get_init_inputs` makes under a seed."""
        self.yield_device()
        reply = self.child.request("recipe", timeout_s=timeout_s, function=function, sizes=dict(sizes), seed=seed)
        return Arguments(reply.get("tree"), tuple(self.backend.fetch(self.child, _list(reply.get("tensors")))))

    def draws(
        self,
        sizes: Mapping[str, Any],
        seeds: Sequence[int],
        positions: Sequence[int],
        *,
        meanwhile: Iterable[object] = (),
        timeout_s: float = 20.0,
    ) -> tuple[list[list[torch.Tensor]], float]:
        """Return some of the tensors that `get_inputs` makes, under each of several seeds, and the seconds that this
        took. The judge takes the steps of `meanwhile` beside that."""
        self.yield_device()
        start, replied_s = time.perf_counter(), 0.0
        fields: dict[str, Any] = {"sizes": dict(sizes), "seeds": list(seeds), "positions": list(positions)}
        asked = self.child.send_request("draws", timeout_s=timeout_s, **fields)
        try:
            for _ in meanwhile:
                if not replied_s and self.child.has_reply(asked):
                    replied_s = time.perf_counter() - start
        finally:
            reply = self.child.receive_reply(asked)
        replied_s, fetching = replied_s or time.perf_counter() - start, time.perf_counter()
        found = self.fetch_calls([_list(claims) for claims in _list(reply.get("draws"))])
        if [len(tensors) for tensors in found] != [len(positions)] * len(seeds):
            raise LayoutError("get_inputs() does not return as many tensors as before")
        return found, replied_s + time.perf_counter() - fetching

    def drawn_layouts(
        self, sizes: Mapping[str, Any], seeds: Sequence[int], *, limit_s: float
    ) -> list[list[TensorSpec]]:
        """Return the layouts of the inputs under each of several seeds, as far as `limit_s` allows."""
        self.yield_device()
        fields: dict[str, Any] = {"sizes": dict(sizes), "seeds": list(seeds), "limit_s": limit_s}
        drawn = _list(self.child.request("layouts", timeout_s=20.0 + limit_s, **fields).get("layouts"))
        return [[TensorSpec.from_json(one) for one in _list(specs)] for specs in drawn]

    def construct(
        self, kind: str, init: Arguments, *, train: bool, seed: int, keep_previous: bool = False
    ) -> StateNames:
        """Build class `kind` with `init`, and return the names of its state.

        `keep_previous` keeps the module before it for `swap_modules`; else it is dropped.
        """
        self.yield_device()
        grant = self.backend.grant(init.tensors)
        try:
            fields = {"class": kind, "tree": init.tree, "train": train, "seed": seed, "beside": keep_previous}
            fields["grant"] = grant.fields
            reply = self.child.request("construct", timeout_s=self.construct_s, fds=grant.fds, **fields)
        finally:
            grant.close()
        return StateNames(_named(reply.get("parameters")), _named(reply.get("buffers")))

    def swap_modules(self) -> None:
        """Use the module that was kept, and keep this one."""
        self.child.request("swap", timeout_s=_STATE_S)

    def compile(self, mode: str) -> None:
        """Wrap the constructed model in torch.compile, which compiles at its first call."""
        self.child.request("compile", timeout_s=120.0, mode=mode)

    def load_state(self, values: Mapping[str, torch.Tensor]) -> None:
        """Set parameters and buffers by their names in this child."""
        if not values:
            return
        grant = self.backend.grant(list(values.values()))
        try:
            fields: dict[str, Any] = {"names": list(values), "grant": grant.fields}
            self.child.request("state", timeout_s=_STATE_S, fds=grant.fds, **fields)
        finally:
            grant.close()

    def describe_state(self) -> StateNames:
        """Return the names of the state as it is now."""
        reply = self.child.request("describe", timeout_s=_STATE_S)
        return StateNames(_named(reply.get("parameters")), _named(reply.get("buffers")))

    def become_null(self, outputs: Any) -> None:
        """Turn a null child into a module that returns these (claimed) outputs, made once."""
        self.child.request("null", timeout_s=_STATE_S, outputs=outputs)

    def run(
        self,
        tree: Any,
        calls: Sequence[Sequence[torch.Tensor]],
        *,
        slot: str,
        timeout_s: float,
        lift: Lifting | None = None,
        mutates: Sequence[int] = (),
        repeats: int = 1,
        settle: bool = False,
        in_place: bool = False,
        detach: bool = False,
        spoil: bool = False,
    ) -> RunReply:
        """Make one untimed call per input set, the whole series `repeats` times.

        With `in_place` each call's inputs lie in the memory of the first one's. With `spoil` the outputs of all calls
        but the last are overwritten, as a caller may. The child is frozen afterwards and keeps its outputs under
        `slot`, detached with `detach`: the caller reads them and calls `end_run`. With `settle` it is not frozen, and
        keeps nothing if its device has a place for copies.
        """
        self.yield_device()
        grant = self.backend.grant_calls(calls, ours=self.kind != "candidate")
        try:
            start = time.perf_counter_ns()
            reply = self.child.request(
                "run", timeout_s=timeout_s, fds=grant.fds,
                slot=slot, tree=tree, grant=grant.fields, lift=asdict(lift) if lift else None,
                mutates=list(mutates), repeats=repeats, poison=self.kind == "candidate", settle=settle,
                in_place=in_place, detach=detach, spoil=spoil,
            )  # fmt: skip
            if not settle:
                self.child.freeze()
            wall_us = (time.perf_counter_ns() - start) / 1000
            if lift:
                self.selects = self.selects or reply.get("picks") is True
            replies = replies_of(reply, repeats * len(calls))
            mutated = _mutated(reply.get("mutated"), repeats * len(calls), len(mutates))
            grant.mark_aliases(self.child, [claim for item in replies for claim in tensor_claims(item)])
        except BaseException:
            grant.close()
            raise
        return RunReply(replies, mutated, grant, wall_us, kept=reply.get("kept") is not False)

    def end_run(self, reply: RunReply) -> None:
        """Let the child continue after `run`. Raise ChildResumed if it ran while frozen."""
        try:
            self.child.check_frozen()
        finally:
            self.child.thaw()
            reply.grant.close()

    def results(
        self,
        tree: Any,
        calls: Sequence[Sequence[torch.Tensor]],
        *,
        timeout_s: float,
        lift: Lifting | None = None,
        mutates: Sequence[int] = (),
        settle: bool = True,
    ) -> list[Result]:
        """Return the replies of a child that is not hostile to itself (a reference), with their tensors.

        The inputs that a call changed follow its tensors. Nothing is kept.
        """
        reply = self.run(
            tree, calls, slot="results", timeout_s=timeout_s,
            lift=lift, mutates=mutates, settle=settle,
        )  # fmt: skip
        try:
            claims = [[*tensor_claims(i), *changed] for i, changed in zip(reply.replies, reply.mutated, strict=True)]
            why = next(filter(None, (lazy_reason(claim) for call in claims for claim in call)), "")
            if why:
                raise LayoutError(why)
            if why := unjudged_leaf(reply.replies[0]) if claims else "":
                raise UnjudgedTensorError(why)
            for place, claim in enumerate(claims[0] if claims else ()):
                if why := unjudged_reason(claim):
                    raise UnjudgedTensorError(f"tensor {place} that forward returns or changes {why}")
            tensors = self.fetch_calls(claims)
        finally:
            self.end_run(reply)
        if reply.kept:
            self.drop("results")
        return list(zip(reply.replies, tensors, strict=True))

    def resolve_ties(
        self,
        tree: Any,
        tensors: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
        ways: Sequence[str | int],
        *,
        timeout_s: float,
    ) -> tuple[list[list[torch.Tensor]], list[bool]]:
        """Return what the lifted reference returns if it selects as `given` does wherever that choice is as good.

        Without `given`, it selects by each of `ways`. Return also which of `given` consist of selected indices
        (`reference.ties`). Raise ChildError if nothing is selected.
        """
        self.yield_device()
        grant = self.backend.grant_calls([[*tensors, *given]], ours=True)
        try:
            fields: dict[str, Any] = {"tree": tree, "grant": grant.fields, "inputs": len(tensors), "slot": "picks"}
            fields["ways"] = list(ways)
            reply = self.child.request("picks", timeout_s=timeout_s, fds=grant.fds, **fields)
            replies, made = replies_of(reply, len(ways)), reply.get("made")
            grant.mark_aliases(self.child, [claim for item in replies for claim in tensor_claims(item)])
            found = self.fetch_calls([tensor_claims(item) for item in replies])
        finally:
            grant.close()
        self.drop("picks")
        return found, [one is True for one in made] if isinstance(made, list) else []

    def fetch_calls(self, claims: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[torch.Tensor]]:
        """Return private copies of the tensors that several calls claim, a list for each; a shared GPU block is opened
        once."""
        ours = self.kind != "candidate"
        copies = iter(self.backend.fetch(self.child, [claim for call in claims for claim in call], ours=ours))
        return [[next(copies) for _ in call] for call in claims]

    def observe(self, tree: Any, tensors: Sequence[torch.Tensor], *, timeout_s: float) -> dict[str, int]:
        """Return how often one call runs each of torch's operations: a claim. Return {} if it cannot be observed."""
        found = self._observed(tree, tensors, timeout_s=timeout_s).get("operations")
        if not isinstance(found, dict):
            return {}
        return {str(name)[:100]: count for name, count in list(found.items())[:100] if type(count) is int}

    def flops(self, tree: Any, tensors: Sequence[torch.Tensor], *, timeout_s: float) -> int | None:
        """Return the floating-point operations of one call as torch counts them: a claim. None: not known."""
        found = self._observed(tree, tensors, timeout_s=timeout_s, arithmetic=True).get("flops")
        return found if type(found) is int and 0 < found < 2**63 else None

    def read_state_bytes(self, tree: Any, tensors: Sequence[torch.Tensor], *, timeout_s: float) -> int | None:
        """Return the bytes of parameters and buffers that one call reads, each once: a claim. None: not known."""
        found = self._observed(tree, tensors, timeout_s=timeout_s).get("state_bytes")
        return found if type(found) is int and 0 <= found < 2**63 else None

    def _observed(
        self, tree: Any, tensors: Sequence[torch.Tensor], *, timeout_s: float, arithmetic: bool = False
    ) -> Mapping[str, Any]:
        grant = self.backend.grant_calls([tensors])
        try:
            fields: dict[str, Any] = {"tree": tree, "grant": grant.fields, "arithmetic": arithmetic}
            return self.child.request("observe", timeout_s=timeout_s, fds=grant.fds, **fields)
        except ChildError:
            return {}
        finally:
            grant.close()

    def profile(
        self, tree: Any, tensors: Sequence[torch.Tensor], *, calls: int, timeout_s: float
    ) -> list[dict[str, Any]]:
        """Return the kernels that one call launches, with their times: claims. Raise ChildError if it cannot be
        profiled."""
        grant = self.backend.grant_calls([tensors])
        try:
            fields: dict[str, Any] = {"tree": tree, "grant": grant.fields, "calls": calls}
            reply = self.child.request("profile", timeout_s=timeout_s, fds=grant.fds, **fields)
        finally:
            grant.close()
        found = [one for one in _list(reply.get("launches")) if isinstance(one, dict)]
        return [
            {**one, "time_us": float(one["time_us"])} for one in found if isinstance(one.get("time_us"), int | float)
        ]

    def drop(self, slot: str) -> None:
        self.child.request("drop", timeout_s=_STATE_S, slot=slot)

    def drop_module(self) -> None:
        """Drop everything that was made of the module, so that its memory can be reused."""
        with contextlib.suppress(ChildFault):  # it is gone, and the next user starts another
            self.child.request("forget", timeout_s=_STATE_S)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise LayoutError("not a list")
    return value


def _mutated(value: Any, calls: int, inputs: int) -> list[list[Mapping[str, Any]]]:
    found = [_list(claims) for claims in _list(value)]
    if len(found) != calls or any(len(claims) != inputs for claims in found):
        raise LayoutError("the child does not report the state of its inputs")
    for claim in (claim for claims in found for claim in claims):
        if not isinstance(claim, dict):
            raise LayoutError("a malformed tensor")
        check_tensor(claim)
    return found


def _named(value: Any) -> tuple[NamedTensor, ...]:
    entries = _list(value)
    if any(not isinstance(e, list) or len(e) != 2 or not isinstance(e[1], dict) for e in entries):
        raise LayoutError("malformed state")
    for _, claim in entries:
        check_tensor(claim)
    return tuple(NamedTensor(str(name), claim) for name, claim in entries)
