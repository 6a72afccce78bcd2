"""Rounds of one Workload: inputs that nobody has seen, a child's calls on them, the overhead, the check of outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from evaluator import values
from evaluator.child.spec import LayoutError
from evaluator.contender import ComparatorFailed, Contender
from evaluator.correctness import check_reply
from evaluator.devices.base import Round, RoundPlan
from evaluator.errors import ChildFault, EvaluatorError, Rejection
from evaluator.oracle import Expected, Oracle
from evaluator.room import Room
from evaluator.subject import rejection
from evaluator.types import Clock, Stage, Verdict, Workload

STAGE = Stage.TIMING
_POOL = 3
_TWINS = 0.1  # the share of calls whose inputs differ in one element only from those of the call before


class Rounds:
    """Makes rounds of a Workload for any child that was constructed with the oracle's parameters."""

    def __init__(self, room: Room, workload: Workload, oracle: Oracle, first_call_s: float) -> None:
        self.room, self.backend, self.workload, self.oracle = room, room.backend, workload, oracle
        self._first_call_s = first_call_s
        made = [oracle.inputs() for _ in range(_POOL)]
        self.tree = made[0].tree
        self._bases = [arguments.tensors for arguments in made]
        self._varies = [not torch.equal(a, b) for a, b in zip(made[0].tensors, made[1].tensors, strict=True)]
        self.like = _widest(oracle.expect(self.tree, self._bases))
        self._null = room.null()
        self.overhead_us: dict[int, float] = {}  # executions a round -> the least that a null child took

    def close(self) -> None:
        self._null.close()

    @property
    def input_bytes(self) -> int:
        """Of one call."""
        return _bytes(self._bases[0])

    @property
    def output_bytes(self) -> int:
        """Of one call, as the reference returns them."""
        return _bytes([target.reference for target in self.like.targets])

    @property
    def bytes_moved(self) -> int:
        """What one call must at least read and write: its inputs, its parameters, its outputs."""
        return self.input_bytes + _bytes(list(self.oracle.parameters.values())) + self.output_bytes

    def planned(self, call_us: float, round_us: float) -> RoundPlan:
        """A round of at least `round_us` for calls that take `call_us`."""
        outputs = sum(t.values.numel() * 8 if not t.integral else t.oracle.numel() * 8 for t in self.like.targets)
        state = [*self.oracle.parameters.values(), *self.oracle.buffers.values()]
        return self.backend.plan(call_us, self.input_bytes, outputs, round_us, _bytes(state))

    def fresh(self, count: int) -> list[values.Tensors]:
        """Input sets of content that was never shown before; now and then two differ in one element only."""
        generator = self.oracle.generator
        calls: list[values.Tensors] = []
        for index, pick in enumerate(torch.rand(count, generator=generator).tolist()):
            if calls and pick < _TWINS:
                calls.append(values.twin(calls[-1], self._varies, generator))
            else:
                calls.append(values.rolled(self._bases[index % len(self._bases)], self._varies, generator))
        return calls

    def prepare(self, contender: Contender, *, graph: bool = True) -> Clock:
        """Bring a contender to where it is timed from. Raises Rejection, ComparatorFailed."""
        try:
            return self.backend.prepare(
                contender.subject.child, self.fresh(2), tree=self.tree, timeout_s=self._first_call_s, graph=graph
            )
        except (ChildFault, LayoutError) as fault:
            raise self._blame(contender, fault) from fault

    def prepare_null(self, calls: Sequence[values.Tensors], *, graph: bool) -> None:
        self._null.null(self.like.reply)
        self.backend.prepare(self._null.child, calls, tree=self.tree, timeout_s=self._first_call_s, graph=graph)

    def run(self, contender: Contender, calls: Sequence[values.Tensors], plan: RoundPlan, *, read: int = 0) -> Round:
        """One round, with the outputs of its first `read` calls. Raises Rejection, ComparatorFailed."""

        def check(replies: Sequence[Any]) -> None:
            for reply in replies:
                check_reply(self.like, reply)

        try:
            with self.room.quiet():
                return self.backend.run_round(
                    contender.subject.child, calls, plan,
                    tree=self.tree, check=check, timeout_s=self._first_call_s, read=read,
                )  # fmt: skip
        except (ChildFault, LayoutError, Rejection) as fault:
            raise self._blame(contender, fault) from fault

    def measure_null(self, calls: Sequence[values.Tensors], plan: RoundPlan, times: int) -> None:
        """A round's least overhead. One replay: launching empty graphs takes CPU time that a busy device hides."""
        once = replace(plan, replays=1, instances=1)
        for _ in range(times):
            with self.room.quiet():
                done = self.backend.run_round(
                    self._null.child, calls, once,
                    tree=self.tree, check=lambda replies: None, timeout_s=30.0, read=0,
                )  # fmt: skip
            known = self.overhead_us.get(plan.executions, math.inf)
            self.overhead_us[plan.executions] = min(known, done.wall_us)

    def verify(self, contender: Contender, expected: Sequence[Expected], done: Round) -> None:
        """Compare every output that was read. Raises Rejection, ComparatorFailed."""
        for call, outputs in enumerate(done.outputs[: to_read(contender, len(expected))]):
            wanted = expected[call]
            for target, limit, actual in zip(wanted.targets, wanted.limits, outputs, strict=True):
                found = target.judge(actual, limit)
                if found is None:
                    continue
                if not contender.suspect:
                    raise ComparatorFailed(contender.name, f"on {self.workload.name}: {found.reason}")
                raise self._wrong(call, found.reason, found.detail)

    def _wrong(self, call: int, reason: str, detail: Mapping[str, Any]) -> Rejection:
        evidence = {} if self.workload.held_out else {"call": call, **detail}
        shown = "" if self.workload.held_out else f": {reason}"
        return Rejection(
            Verdict.INCORRECT_VALUES,
            STAGE,
            f"a timed call on {self._shown()} gave a wrong output{shown}",
            check="timed_values",
            **evidence,
        )

    def _blame(self, contender: Contender, fault: ChildFault | LayoutError | Rejection) -> EvaluatorError:
        if contender.name == "candidate":
            if isinstance(fault, Rejection):
                return fault
            return rejection(fault, STAGE, f"timing {self._shown()}")
        return ComparatorFailed(contender.name, f"on {self.workload.name}: {fault}")

    def _shown(self) -> str:
        return "a held-out workload" if self.workload.held_out else self.workload.name


def to_read(contender: Contender, calls: int) -> int:
    """How many calls of a round are compared: all of a Candidate's, one of a Baseline's."""
    return calls if contender.suspect else min(1, calls)


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _widest(found: Sequence[Expected]) -> Expected:
    """The first, with the widest limits of all."""
    limits = list(found[0].limits)
    for other in found[1:]:
        limits = [mine.widest(theirs) for mine, theirs in zip(limits, other.limits, strict=True)]
    return replace(found[0], limits=tuple(limits))
