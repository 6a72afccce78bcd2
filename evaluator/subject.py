"""The judge's handle on a child that serves one module: a reference, a Candidate, or a Baseline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch

from evaluator.cage.policy import Limits
from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.claims import check_tensor, lazy, replies_of, tensor_claims
from evaluator.devices.base import DeviceBackend, Grant
from evaluator.errors import CageError, ChildCrashed, ChildError, ChildFault, ChildMoved, ChildTimeout, Rejection
from evaluator.languages.base import line_at_end, line_in_candidate
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.prestart import Spares
from evaluator.sandbox.process import Asked, ChildProcess
from evaluator.types import Stage, Verdict

_CANDIDATE_FILE = "candidate.py"
_SET_UP_S, _LOAD_S, _CONSTRUCT_S, _STATE_S = 30.0, 60.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a recipe made: `tree` says where each of `tensors` goes (`child.spec.write_tree`)."""

    tree: Any
    tensors: tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class Lifting:
    """How a reference is run in float64: with sums off by what rounding to a unit of `shake` makes of them, with
    `everywhere` all other arithmetic, too, and `weights` rounded to a dtype of that name (`child.shake`). With
    `own_constants` what depends on no input nor parameter is as the reference computes it (`child.lift`)."""

    shake: float = 0.0
    everywhere: bool = False
    weights: str = ""
    own_constants: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """A parameter or buffer as a child describes it."""

    name: str
    claim: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.claim.get("shape", ()))


@dataclass(frozen=True, slots=True)
class StateNames:
    """Parameters and buffers in registration order."""

    parameters: tuple[Named, ...]
    buffers: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class RunReply:
    """What a run returned, and which of its inputs it changed: claims, one entry per call."""

    replies: Sequence[Any]
    mutated: Sequence[Sequence[Mapping[str, Any]]]
    grant: Grant
    wall_us: float
    kept: bool


class Subject:
    """One child with one module in it. A context manager; closing ends the child."""

    def __init__(self, child: ChildProcess, backend: DeviceBackend, kind: str) -> None:
        self.child, self.backend, self.kind = child, backend, kind
        self.give_way: Callable[[], None] = lambda: None  # called before long work (`DeviceSharing`)
        self.picks: bool | None = None  # whether a reference has any of `child.lift.PICKING`; None: not seen yet
        self.left_out: Collection[str] = ()  # what a reference does not survive (`sizes.LeftOut`)
        self.tables: set[str] = set()  # a reference's buffers that were not all zeros or ones when they were made

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
        spares: Spares | None = None,
    ) -> Self:
        """A fresh child that has loaded `source`, one of `spares` if there is one. `kind` is "reference" or
        "candidate"; raises ChildFault."""
        needs = {"reference": ["Model", "get_inputs"], "candidate": ["ModelNew"], "null": []}[kind]
        content = {_CANDIDATE_FILE: source.encode("utf-8", "surrogatepass"), **(files or {})}
        spare = spares.take(kind, content) if spares is not None else None
        child = spare or pool.start(name=kind, files=content, limits=limits)
        subject = cls(child, backend, kind)
        try:
            if spare is None:
                set_up(child, str(backend.torch_device))
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
        """Registers, shared memory and spills of the kernels that the module compiled so far: claims, for reports."""
        found = _list(self.child.request("kernels", timeout_s=20.0).get("kernels"))
        return [kernel for kernel in found if isinstance(kernel, dict)]

    def recipe(self, function: str, sizes: Mapping[str, Any], seed: int, *, timeout_s: float = 20.0) -> Arguments:
        """What the reference's `get_inputs` or `get_init_inputs` makes under a seed."""
        self.give_way()
        reply = self.child.request("recipe", timeout_s=timeout_s, function=function, sizes=dict(sizes), seed=seed)
        return Arguments(reply.get("tree"), tuple(self.backend.fetch(self.child, _list(reply.get("tensors")))))

    def draws(
        self, sizes: Mapping[str, Any], seeds: Sequence[int], positions: Sequence[int], *, timeout_s: float = 20.0
    ) -> list[list[torch.Tensor]]:
        """Some of the tensors that `get_inputs` makes, under each of several seeds."""
        self.give_way()
        reply = self.child.request(
            "draws", timeout_s=timeout_s, sizes=dict(sizes), seeds=list(seeds), positions=list(positions)
        )
        found = self.fetch_calls([_list(claims) for claims in _list(reply.get("draws"))])
        if [len(tensors) for tensors in found] != [len(positions)] * len(seeds):
            raise LayoutError("get_inputs() does not return as many tensors as before")
        return found

    def construct(self, kind: str, init: Arguments, *, train: bool, seed: int, beside: bool = False) -> StateNames:
        """Build class `kind` with `init`, and say what state it has. The module before it is kept `beside` it, for
        `swap`, or dropped."""
        self.give_way()
        grant = self.backend.grant(init.tensors)
        try:
            fields = {"class": kind, "tree": init.tree, "train": train, "seed": seed, "beside": beside}
            fields["grant"] = grant.fields
            reply = self.child.request("construct", timeout_s=_CONSTRUCT_S, fds=grant.fds, **fields)
        finally:
            grant.close()
        return StateNames(_named(reply.get("parameters")), _named(reply.get("buffers")))

    def swap(self) -> None:
        """Go on with the module that was kept beside this one, and keep this one."""
        self.child.request("swap", timeout_s=_STATE_S)

    def compile(self, mode: str) -> None:
        """Wrap the constructed model in torch.compile; it is compiled at its first call."""
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

    def describe(self) -> StateNames:
        """The state as it is now."""
        reply = self.child.request("describe", timeout_s=_STATE_S)
        return StateNames(_named(reply.get("parameters")), _named(reply.get("buffers")))

    def null(self, outputs: Any) -> None:
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
        """One call per input set, untimed, all of them `repeats` times in turn; `in_place` each in the memory of the
        first; with `spoil` whoever called overwrites what all but the last returned. The child is frozen afterwards,
        its outputs kept under `slot`, or what `detach` makes of them: the caller reads what it needs and calls
        `finish`. With `settle` it is not frozen, and keeps nothing where its device has a place for copies."""
        self.give_way()
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
                self.picks = self.picks or reply.get("picks") is True
            replies = replies_of(reply, repeats * len(calls))
            mutated = _mutated(reply.get("mutated"), repeats * len(calls), len(mutates))
            grant.mark_aliases(self.child, [claim for item in replies for claim in tensor_claims(item)])
        except BaseException:
            grant.close()
            raise
        return RunReply(replies, mutated, grant, wall_us, kept=reply.get("kept") is not False)

    def finish(self, reply: RunReply) -> None:
        """Let the child go on after `run`. Raises ChildMoved when it did so by itself."""
        try:
            self.child.check_still()
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
    ) -> list[tuple[Any, list[torch.Tensor]]]:
        """Replies of a child that is not hostile to itself (a reference) with their tensors, and after those the inputs
        that it changed; nothing is kept."""
        reply = self.run(
            tree, calls, slot="results", timeout_s=timeout_s,
            lift=lift, mutates=mutates, settle=settle,
        )  # fmt: skip
        try:
            claims = [[*tensor_claims(i), *changed] for i, changed in zip(reply.replies, reply.mutated, strict=True)]
            why = next(filter(None, (lazy(claim) for call in claims for claim in call)), "")
            if why:
                raise LayoutError(why)
            tensors = self.fetch_calls(claims)
        finally:
            self.finish(reply)
        if reply.kept:
            self.drop("results")
        return list(zip(reply.replies, tensors, strict=True))

    def picked(
        self,
        tree: Any,
        tensors: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
        ways: Sequence[str | int],
        *,
        timeout_s: float,
    ) -> tuple[list[list[torch.Tensor]], list[bool]]:
        """What the lifted reference returns if it picks as `given` does wherever that is as good, and where nothing is
        given by each of these ways; and which of `given` are made of picks (`child.picks`). Raises ChildError where
        nothing is picked."""
        self.give_way()
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
        """Private copies of what several calls claim, a list for each: a GPU's block of many of them is opened once."""
        ours = self.kind != "candidate"
        copies = iter(self.backend.fetch(self.child, [claim for call in claims for claim in call], ours=ours))
        return [[next(copies) for _ in call] for call in claims]

    def observe(self, tree: Any, tensors: Sequence[torch.Tensor], *, timeout_s: float) -> dict[str, int]:
        """Which of torch's operations one call runs, and how often: a claim. Empty where it cannot be watched."""
        found = self._observed(tree, tensors, timeout_s=timeout_s).get("operations")
        if not isinstance(found, dict):
            return {}
        return {str(name)[:100]: count for name, count in list(found.items())[:100] if type(count) is int}

    def flops(self, tree: Any, tensors: Sequence[torch.Tensor], *, timeout_s: float) -> int | None:
        """The floating-point operations of one call as torch counts them: a claim, for reports. None: not known."""
        found = self._observed(tree, tensors, timeout_s=timeout_s, arithmetic=True).get("flops")
        return found if type(found) is int and 0 < found < 2**63 else None

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
        """Kernels that one call launches, with their times: claims. Raises ChildError where nothing can be profiled."""
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

    def forget(self) -> None:
        """Drop everything that was made of the module; its memory can be used by others."""
        with contextlib.suppress(ChildFault):  # it is gone, and whoever asks next starts another
            self.child.request("forget", timeout_s=_STATE_S)


def ask_to_set_up(child: ChildProcess, device: str) -> Asked:
    """Have a fresh child make itself ready for a device. Raises ChildFault."""
    return child.ask("setup", timeout_s=_SET_UP_S, device=device, threads=1)


def set_up(child: ChildProcess, device: str) -> None:
    """Nothing of a module runs here: what fails is ours or the machine's. Raises CageError."""
    try:
        child.answer(ask_to_set_up(child, device))
    except ChildFault as fault:
        raise CageError(f"a fresh child does not start on {device}: {fault}. {fault.output[-500:]}") from fault


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise LayoutError("not a list")
    return value


def _mutated(value: Any, calls: int, inputs: int) -> list[list[Mapping[str, Any]]]:
    found = [_list(claims) for claims in _list(value)]
    if len(found) != calls or any(len(claims) != inputs for claims in found):
        raise LayoutError("the child does not say what became of its inputs")
    for claim in (claim for claims in found for claim in claims):
        if not isinstance(claim, dict):
            raise LayoutError("a tensor that nobody wrote")
        check_tensor(claim)
    return found


def _named(value: Any) -> tuple[Named, ...]:
    entries = _list(value)
    if any(not isinstance(e, list) or len(e) != 2 or not isinstance(e[1], dict) for e in entries):
        raise LayoutError("state that nobody wrote")
    for _, claim in entries:
        check_tensor(claim)
    return tuple(Named(str(name), claim) for name, claim in entries)


def rejection(fault: ChildFault | LayoutError, stage: Stage, doing: str) -> Rejection:
    """The Verdict on a Candidate whose child failed while `doing`."""
    if isinstance(fault, LayoutError):
        return Rejection(Verdict.RUNTIME_ERROR, stage, f"{doing}: what it returned cannot be read: {fault}")
    evidence: dict[str, Any] = {"check": "runs", "doing": doing, "output": fault.output[-2000:]}
    if isinstance(fault, ChildTimeout):
        line = line_at_end(fault.output)
        evidence |= {"limit_s": fault.timeout_s, "operation": fault.op, "line": line}
        where = f", when it was in line {line}" if line else ""
        return Rejection(Verdict.TIMEOUT, stage, f"{doing}: not done within {fault.timeout_s:g} s{where}", **evidence)
    if isinstance(fault, ChildMoved):
        evidence["check"] = "stopped"
        reason = f"{doing}: it ran on after it was stopped, when its outputs are read"
        return Rejection(Verdict.REWARD_HACK, stage, reason, **evidence)
    if isinstance(fault, ChildError):
        evidence |= {"error": fault.kind, "message": fault.message, "trace": fault.trace}
        line = _first_line(fault.message) if fault.kind == "CompileError" else None
        evidence["line"] = line or line_in_candidate(fault.trace)
        first = (fault.message.splitlines() or [""])[0][:300]
        return Rejection(_verdict_of_error(fault), stage, f"{doing}: {fault.kind}: {first}", **evidence)
    if isinstance(fault, ChildCrashed):
        evidence |= {"signal": fault.signal, "exit_code": fault.exit_code, "line": line_at_end(fault.output)}
        verdict = Verdict.OUT_OF_MEMORY if fault.oom else Verdict.RUNTIME_ERROR
        return Rejection(verdict, stage, f"{doing}: its process {fault}", **evidence)
    return Rejection(Verdict.RUNTIME_ERROR, stage, f"{doing}: {fault}", **evidence)


def _first_line(log: str) -> int | None:
    """The line of the first error in a compiler's log."""
    head = log.splitlines()[0] if log else ""
    return line_in_candidate(head)


def _verdict_of_error(fault: ChildError) -> Verdict:
    if fault.oom:
        return Verdict.OUT_OF_MEMORY
    if fault.kind in ("CompileError", "CompilationError"):
        return Verdict.BUILD_ERROR
    if fault.kind in ("Unusable", "SyntaxError", "IndentationError"):
        return Verdict.INVALID_SUBMISSION
    return Verdict.RUNTIME_ERROR
