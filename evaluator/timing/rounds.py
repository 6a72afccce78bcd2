"""Rounds of one Workload: inputs that nobody has seen, a child's calls on them, the overhead, the check of outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch

from evaluator.child.protocol import chain
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.comparison.layout_checks import check_reply
from evaluator.device_session import DeviceSession
from evaluator.devices.base import OneByOne, Round, RoundPlan, Singles
from evaluator.errors import ChildError, ChildFault, EvaluatorError, Rejection
from evaluator.inputs import values
from evaluator.oracle.oracle import Oracle
from evaluator.timing.contender import Contender
from evaluator.timing.round_inputs import DRAWING_S, Inputs
from evaluator.timing.runs import Fresh, bytes_of, to_read
from evaluator.timing.verifier import Verifier
from evaluator.types import Clock, DeviceKind, Workload

FIRST_CALLS = 4  # in the rounds that tell how long a call takes
_FEWEST_DRAWN, _UNSEEN_S = 2, 0.5  # calls of a round whose integers are all drawn
_ODD = 0.06  # the share of calls that hold adversarial values
_FEW = 8
_ODD_SPARE = 100  # times an input's bytes of device memory must be free for that


class Rounds:
    """Makes rounds of a Workload for any child that was constructed with the oracle's parameters."""

    def __init__(self, room: DeviceSession, workload: Workload, oracle: Oracle, first_call_s: float) -> None:
        self.room, self.backend, self.workload, self.oracle = room, room.backend, workload, oracle
        self._first_call_s = first_call_s
        self.inputs = Inputs(oracle)
        self.tree, self._bases = self.inputs.tree, self.inputs.bases
        first, *others = oracle.expect(self.tree, self._bases)
        self.like = first.with_widest_limits(others)
        self._stateful = oracle.stateful(self.tree, self._bases[0])
        self.moves_buffers = not self._stateful and oracle.changes_buffers(self.tree, self._bases[0])
        self._mutated = oracle.mutated(self.tree)
        self.verifier = Verifier(workload, oracle, self.tree, self.like, self._mutated, stateful=self._stateful)
        self._linked = self._linked_outputs()
        self._odd = self._odd_kinds()
        self._next_odd = 0
        self._idle: Fresh | None = None
        self._leases = ExitStack()
        self._null = self._leases.enter_context(room.comparators.lend_null_child())
        self.overhead_us: dict[int, float] = {}  # executions a round -> the least that a null child took

    def close(self) -> None:
        self._leases.close()

    @property
    def input_bytes(self) -> int:
        """Of one call."""
        return bytes_of(self._bases[0])

    @property
    def output_bytes(self) -> int:
        """Of one call, as the reference returns them."""
        return bytes_of([target.reference for target in self.like.targets])

    @property
    def bytes_moved(self) -> int:
        """What one call must at least read and write: its inputs, its parameters, its outputs."""
        return self.input_bytes + bytes_of(list(self.oracle.parameters.values())) + self.output_bytes

    def planned(self, call_us: float, round_us: float) -> RoundPlan:
        """A round of at least `round_us` for calls that take `call_us`."""
        outputs = sum(t.values.numel() * 8 if not t.integral else t.oracle.numel() * 8 for t in self.like.targets)
        state = [*self.oracle.parameters.values(), *self.oracle.buffers.values()]
        plan = self.backend.plan(call_us, self.input_bytes, outputs, round_us, bytes_of(state))
        # Doing again what changes its inputs or its state is another task than doing it once.
        plan = replace(plan, replays=1) if self._mutated else plan
        return replace(plan, replays=1, instances=1) if self._stateful else plan

    def first_plan(self, round_us: float) -> RoundPlan:
        """A round of calls that take nobody knows how long. Where their number does not depend on that, everybody is
        prepared once and for all."""
        plan = self.planned(math.inf, round_us)
        return replace(plan, calls=max(FIRST_CALLS, plan.calls), replays=1)

    def fresh(self, count: int) -> Fresh:
        """Inputs of content that was never shown before, and a chain between the calls.

        Now and then two calls differ in one element only, and some hold values that a careless kernel gets wrong:
        which, nobody can tell beforehand.
        """
        kinds = {place: self._one_of_all() for place in self._odd_places(count)}
        return self._made(count, kinds)

    def plain(self, count: int) -> Fresh:
        """As `fresh`, without values that a careless kernel gets wrong."""
        return self._made(count, {})

    def drawable(self, count: int) -> int:
        """How many of so many calls may have integers of a draw of their own: as many as are drawn in a while."""
        return count if not self.inputs.recurs else min(count, max(_FEWEST_DRAWN, self.inputs.drawn_within(_UNSEEN_S)))

    def unseen(self, count: int) -> Fresh:
        """As `plain`, however long it takes to draw for each call."""
        return self._made(count, {}, math.inf)

    def idle(self, count: int) -> Fresh:
        """The same as the last time, if that were as many calls: for rounds that are neither timed nor checked."""
        if self._idle is None or len(self._idle.calls) != count:
            self._idle = None
            self._idle = self.fresh(count)
        return self._idle

    def repeated(self, count: int) -> Fresh:
        """As many calls as are wanted, with the inputs of idle ones over and over: to prepare children with."""
        some = self._idle or self.idle(FIRST_CALLS)
        times = -(-count // len(some.calls))
        return Fresh((some.calls * times)[:count], (some.odd * times)[:count], some.kinds, some.link)

    def secret(self, below: int) -> int:
        """A number that no child can guess."""
        return int(torch.randint(below, (1,), generator=self.oracle.generator, device=self.oracle.generator.device))

    def share(self) -> float:
        """A number of [0, 1) that no child can guess."""
        return float(torch.rand(1, generator=self.oracle.generator, device=self.oracle.generator.device))

    def rehearsals(self, count: int, to_come: int, *, least: int = 0) -> Iterator[Fresh]:
        """Rounds of `count` calls that nobody times, so many at the least. They hold between them every kind of
        adversarial values that no round before held nor the next `to_come` will: those also that a processor computes
        slower. For a child they are like any other round."""
        soon = range(self._next_odd + 1, self._next_odd + 1 + to_come * self._odd_calls(count))
        known = self.verifier.kinds | {self._odd[turn % len(self._odd)].name for turn in soon}
        left = (
            self.inputs.kinds([k for k in values.ADVERSARIAL if k.name not in known and self._compares(k)])
            if self._odd
            else []
        )
        left = self.inputs.shuffled(left)
        places, made = max(1, count - 1), 0
        while left or made < least:
            some, left, made = left[:places], left[places:], made + 1
            where = [1 + place for place in torch.randperm(count - 1, generator=self.oracle.generator).tolist()]
            yield self._made(count, dict(zip(where or [0], some, strict=False)))

    def _compares(self, kind: values.ValueSet) -> bool:
        """Whether there is something to compare where the chain puts usual values among those. Who picks among scores
        that all tie may pick what no way to pick has (`allow_alternatives`)."""
        return not kind.only_finite_results and not (self.oracle.subject.selects and kind.name in values.NEARLY_ZERO)

    def _one_of_all(self) -> values.ValueSet:
        self._next_odd += 1
        return self._odd[self._next_odd % len(self._odd)]

    def _made(self, count: int, kinds: Mapping[int, values.ValueSet], drawing_s: float = DRAWING_S) -> Fresh:
        calls, odd = self.inputs.calls(count, kinds, drawing_s)
        return Fresh(calls, odd, frozenset(kind.name for kind in kinds.values()), self._link(calls[0]))

    def _odd_places(self, count: int) -> set[int]:
        """Which calls of a round hold adversarial values: never the first, and one at least where there are more."""
        many = self._odd_calls(count)
        return {
            1 + place for place in torch.randperm(max(0, count - 1), generator=self.oracle.generator).tolist()[:many]
        }

    def _odd_calls(self, count: int) -> int:
        """How many calls of a round of `count` hold adversarial values."""
        if not self._odd or count < 2:
            return 0
        return min(count - 1, max(2 if count > _FEW else 1, round(_ODD * count)))

    def _odd_kinds(self) -> list[values.ValueSet]:
        """The value sets that calls of timed rounds are made of now and then, in secret order."""
        spare = self.backend.spare_bytes()
        if self._stateful or (spare is not None and spare < _ODD_SPARE * self.input_bytes):
            return []
        return self.inputs.kinds(self.inputs.shuffled(values.TIMED))

    def _linked_outputs(self) -> list[int]:
        """The outputs that a chain may read. A captured step always reads the same one, picked at random."""
        returned = self.like.targets[: len(self.like.targets) - len(self._mutated)]
        able = [index for index, target in enumerate(returned) if target.oracle.numel()]
        if self.backend.kind is DeviceKind.CPU or not able:
            return able
        return [able[int(torch.randint(len(able), (1,), generator=self.oracle.generator))]]

    def _link(self, inputs: values.Tensors) -> chain.Link | None:
        if not self._linked:
            return None
        read = self._linked[self.secret(len(self._linked))]
        return self.inputs.link(inputs, read, self.like.targets[read].oracle.numel())

    def prepare(self, contender: Contender, plan: RoundPlan, *, graph: bool = True) -> Clock:
        """Bring a contender to where it is timed from, in rounds like `plan`. Raises Rejection, ComparatorFailed."""
        fresh = self.idle(plan.calls)
        try:
            return self.backend.prepare(
                contender.subject.child, fresh.calls, tree=self.tree, timeout_s=self._first_call_s,
                graph=graph, instances=plan.instances, link=fresh.link,
            )  # fmt: skip
        except (ChildFault, LayoutError) as fault:
            raise self._blamed(contender, fault, fresh) from fault

    def prepare_null(self, fresh: Fresh, *, graph: bool) -> None:
        self._null.become_null(self.like.reply)
        self.backend.prepare(
            self._null.child, fresh.calls,
            tree=self.tree, timeout_s=self._first_call_s, graph=graph, link=fresh.link,
        )  # fmt: skip

    def run(self, contender: Contender, fresh: Fresh, plan: RoundPlan, *, read: int = 0, watch: bool = False) -> Round:
        """One round, with the outputs of its first `read` calls. Raises Rejection, ComparatorFailed."""
        try:
            self._start(contender)
            contender.shown(plan.replays)
            with self.room.pools.monitoring_paused():
                return self.backend.run_round(
                    contender.subject.child, fresh.calls, plan,
                    tree=self.tree, check=self._check_replies, timeout_s=self._first_call_s, read=read, link=fresh.link,
                    look=contender.compared_in_full and read > 0, watch=watch,
                )  # fmt: skip
        except (ChildFault, LayoutError, Rejection) as fault:
            raise self._blamed(contender, fault, fresh) from fault

    def _blamed(
        self, contender: Contender, fault: ChildFault | LayoutError | Rejection, fresh: Fresh
    ) -> EvaluatorError:
        """What a fault in a round is told as. Raises UnsupportedCase where the reference fails there, too."""
        if isinstance(fault, ChildError) and not fault.loses_device:
            self.oracle.leave_out_if_failing(self.tree, fresh.calls, fault)
        return self.verifier.blame(contender, fault)

    def _start(self, contender: Contender) -> None:
        """Where forward moves buffers every round begins with the reference's: a tensor's version tells of a load, so
        the round after which they are compared must not be the only one that has one."""
        if self._stateful or self.moves_buffers:
            contender.subject.load_state(contender.buffers)

    @property
    def null(self) -> Contender:
        """The child that returns ready-made outputs, for `run_singly`."""
        return Contender("null", self._null, suspect=False, buffers={})

    def run_singly(self, contender: Contender, fresh: Fresh, layouts: Sequence[TensorSpec]) -> Singles:
        """The same calls, unchained, each granted when the one before has returned, on a device that can do that.
        Raises Rejection, ComparatorFailed."""
        backend = self.backend
        assert isinstance(backend, OneByOne)
        assert fresh.link is None
        try:
            self._start(contender)
            with self.room.pools.monitoring_paused():
                return backend.run_singly(
                    contender.subject.child, fresh.calls, layouts,
                    tree=self.tree, check=self._check_replies, timeout_s=self._first_call_s,
                    read=to_read(contender, len(fresh.calls)), look=contender.compared_in_full,
                )  # fmt: skip
        except (ChildFault, LayoutError, Rejection) as fault:
            raise self._blamed(contender, fault, fresh) from fault

    def run_null(self, fresh: Fresh, plan: RoundPlan, *, watch: bool = False) -> Round:
        """One round of the null child, of which nothing is read."""
        with self.room.pools.monitoring_paused():
            return self.backend.run_round(
                self._null.child, fresh.calls, plan,
                tree=self.tree, check=lambda replies: None, timeout_s=30.0, read=0, link=fresh.link, watch=watch,
            )  # fmt: skip

    def _check_replies(self, replies: Sequence[Any]) -> None:
        before = None
        for reply in replies:
            kind = {**reply["tensor"], "address": 0} if "tensor" in reply else reply
            if kind != before:  # nearly all are laid out alike
                check_reply(self.like, reply)
            before = kind

    def measure_null(self, fresh: Fresh, plan: RoundPlan, times: int) -> None:
        """A round's least overhead: calls of nothing, the chain's steps, everything around them. Without a chain it is
        measured with one replay: launching empty graphs takes CPU time that a busy device hides."""
        once = replace(plan, instances=1, replays=1 if fresh.link is None else plan.replays)
        for _ in range(times):
            done = self.run_null(fresh, once)
            known = self.overhead_us.get(plan.executions, math.inf)
            self.overhead_us[plan.executions] = min(known, done.wall_us)


def ends_after(number: int, share: float, *, most: int, shortest: float) -> int:
    """After how many replays, of `most` at the most, the rehearsal of that number ends, for a `share` that is drawn
    evenly of [0, 1). Every second one before `shortest`, the fewest that a round had so far: who works in the last
    replay alone has learnt from the rounds when that comes, and every replay that it skips then is such a one. By turns
    any of these, and as often the third as the last fifth of them."""
    bound = int(min(most, shortest))
    if number % 2 or bound <= 2:
        return 1 + int(share * most)
    return int(2 * (bound / 2) ** share) if number % 4 == 0 else 2 + int(share * (bound - 2))
