"""Rounds of one Workload: new inputs, a child's calls on them, the overhead, the check of outputs."""

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
from evaluator.devices.base import PlainLoop, Round, RoundPlan, RoundRequest, SingleCallBackend, SingleCallRound
from evaluator.errors import ChildError, ChildFault, EvaluatorError, Rejection
from evaluator.inputs import values
from evaluator.oracle.oracle import Oracle
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import RoundInputs, compared_calls
from evaluator.timing.overhead import Overhead
from evaluator.timing.round_inputs import DRAWING_S, InputMaker
from evaluator.timing.verifier import Verifier
from evaluator.types import Clock, DeviceKind, Workload

FIRST_CALLS = 4  # in the rounds that measure a call's time
_FEWEST_DRAWN, _REDRAWING_S = 2, 0.5  # of a round in which every call's integers are drawn: least calls, seconds
_ADVERSARIAL_SHARE = 0.06  # share of calls that hold adversarial values
_FEW_CALLS = 8
_NULL_ROUND_S = 30.0
_REHEARSED_CALLS = 24  # of a rehearsal: one that skips a tenth passes one in twelve, and there are eight
# A contender that is hundreds of times slower than the fastest would be given seconds of replays in each round. Three
# replays are enough for the checks of replays.
_LONGEST_ROUND_US, _FEWEST_REPLAYS = 1e6, 3
_ADVERSARIAL_FREE_INPUTS = 100  # free device memory that this needs, in multiples of an input's bytes


class Rounds:
    """Makes rounds of a Workload for any child that was constructed with the oracle's parameters."""

    def __init__(self, session: DeviceSession, workload: Workload, oracle: Oracle, first_call_s: float) -> None:
        self.session, self.backend, self.workload, self.oracle = session, session.backend, workload, oracle
        self._first_call_s = first_call_s
        self.input_maker = InputMaker(oracle)
        self.tree, self._bases = self.input_maker.tree, self.input_maker.bases
        first, *others = oracle.expect(self.tree, self._bases)
        self.typical = first.with_widest_limits(others)
        self._state_bytes = oracle.state_bytes(self.tree, self._bases[0])
        self._stateful = oracle.stateful(self.tree, self._bases[0])
        self.moves_buffers = not self._stateful and oracle.changes_buffers(self.tree, self._bases[0])
        self._mutated = oracle.mutated(self.tree)
        self.verifier = Verifier(workload, oracle, self.tree, self.typical, self._mutated, stateful=self._stateful)
        self._linked = self._linked_outputs()
        self._adversarial = self._adversarial_kinds()
        self._next_kind = 0
        self._idle_inputs: RoundInputs | None = None
        self._leases = ExitStack()
        self._null = self._leases.enter_context(session.comparators.lend_null_child())
        self.overhead = Overhead()

    def close(self) -> None:
        self._leases.close()

    @property
    def input_bytes(self) -> int:
        """Bytes of one call's inputs."""
        return values.bytes_of(self._bases[0])

    @property
    def output_bytes(self) -> int:
        """Bytes of one call's outputs, as the reference returns them."""
        return values.bytes_of([target.reference for target in self.typical.targets])

    @property
    def bytes_moved(self) -> int:
        """The bytes that a call must read and write at least: its inputs, the state that it reads, its outputs."""
        return self.input_bytes + self._state_bytes + self.output_bytes

    def planned(self, call_us: float, round_us: float) -> RoundPlan:
        """Return a round of at least `round_us` for calls that take `call_us`."""
        outputs = sum(t.values.numel() * 8 if not t.integral else t.oracle.numel() * 8 for t in self.typical.targets)
        state = [*self.oracle.parameters.values(), *self.oracle.buffers.values()]
        plan = self.backend.plan(call_us, self.input_bytes, outputs, round_us, values.bytes_of(state))
        # Repeating a call that changes its inputs or its state is a different task.
        plan = replace(plan, replays=1) if self._mutated else plan
        return replace(plan, replays=1, instances=1) if self._stateful else plan

    def first_plan(self, round_us: float) -> RoundPlan:
        """Return a round for calls of unknown time. On a GPU, where the number of calls does not depend on their time,
        children are prepared once for all rounds."""
        plan = self.planned(math.inf, round_us)
        least = 1 if self.backend.kind is DeviceKind.CUDA else FIRST_CALLS
        return replace(plan, calls=max(least, plan.calls), replays=1)

    def new_inputs(self, count: int) -> RoundInputs:
        """Return inputs that were never shown before, and a chain between the calls.

        Some calls, in secret places, differ from their neighbour in one element or hold values that a careless kernel
        gets wrong.
        """
        kinds = {place: self._take_kind() for place in self._adversarial_places(count)}
        return self._make_inputs(count, kinds)

    def usual_inputs(self, count: int) -> RoundInputs:
        """Return new inputs without adversarial values."""
        return self._make_inputs(count, {})

    def drawable_calls(self, count: int) -> int:
        """Return how many of `count` calls can have integers of a draw of their own within `_REDRAWING_S`."""
        return (
            count
            if not self.input_maker.integers_repeat
            else min(count, max(_FEWEST_DRAWN, self.input_maker.drawn_within(_REDRAWING_S)))
        )

    def drawn_inputs(self, count: int) -> RoundInputs:
        """Return `usual_inputs` with a draw for each call, however long drawing takes."""
        return self._make_inputs(count, {}, math.inf)

    def idle_inputs(self, count: int) -> RoundInputs:
        """Return inputs for rounds that are neither timed nor checked: those of the last time, if their number is the
        same."""
        if self._idle_inputs is None or len(self._idle_inputs.calls) != count:
            self._idle_inputs = None
            self._idle_inputs = self.new_inputs(count)
        return self._idle_inputs

    def repeated_inputs(self, count: int) -> RoundInputs:
        """Return idle inputs, repeated up to `count` calls, to prepare children with."""
        some = self._idle_inputs or self.idle_inputs(FIRST_CALLS)
        times = -(-count // len(some.calls))
        return RoundInputs((some.calls * times)[:count], (some.value_sets * times)[:count], some.kinds, some.link)

    def secret_below(self, below: int) -> int:
        """Return a secret integer below a bound."""
        return int(torch.randint(below, (1,), generator=self.oracle.generator, device=self.oracle.generator.device))

    def secret_fraction(self) -> float:
        """Return a secret number in [0, 1)."""
        return float(torch.rand(1, generator=self.oracle.generator, device=self.oracle.generator.device))

    def rehearsals(self, count: int, to_come: int, *, least: int = 0) -> Iterator[RoundInputs]:
        """Yield at least `least` untimed rounds of `count` calls. Together they hold every kind of adversarial values
        that neither earlier rounds nor the next `to_come` ones hold, also those that a processor computes slower. A
        child cannot tell them from other rounds."""
        soon = range(self._next_kind + 1, self._next_kind + 1 + to_come * self._adversarial_calls(count))
        known = self.verifier.kinds | {self._adversarial[turn % len(self._adversarial)].name for turn in soon}
        left = (
            self.input_maker.kinds([k for k in values.ADVERSARIAL if k.name not in known and self._is_comparable(k)])
            if self._adversarial
            else []
        )
        left = self.input_maker.shuffled(left)
        places, made = max(1, count - 1), 0
        while left or made < least:
            some, left, made = left[:places], left[places:], made + 1
            where = [1 + place for place in torch.randperm(count - 1, generator=self.oracle.generator).tolist()]
            yield self._make_inputs(count, dict(zip(where or [0], some, strict=False)))

    def rehearsed_calls(self, inputs: RoundInputs) -> frozenset[int] | None:
        """Return the calls of a rehearsal to compare: all on adversarial values, and some others in secret places.
        Where calls depend on those before, all are compared (None)."""
        if self._stateful:
            return None
        usual = [call for call, kind in enumerate(inputs.value_sets) if kind is None]
        odd = [call for call, kind in enumerate(inputs.value_sets) if kind is not None]
        return frozenset((*odd, *self.input_maker.shuffled(usual)[:_REHEARSED_CALLS]))

    def _is_comparable(self, kind: values.ValueSet) -> bool:
        """Return whether outputs can be compared where the chain mixes usual values into those. A kernel that picks
        among scores that all tie may pick a set that no single order gives (`nan_and_ties`)."""
        if kind.only_finite_results or kind.nan_is_free:
            return False
        selects = self.oracle.subject.selects
        if kind.only_floats and (selects or any(target.integral for target in self.typical.targets)):
            return False
        return not (selects and kind.name in values.NEARLY_ZERO)

    def _take_kind(self) -> values.ValueSet:
        self._next_kind += 1
        return self._adversarial[self._next_kind % len(self._adversarial)]

    def _make_inputs(
        self, count: int, kinds: Mapping[int, values.ValueSet], drawing_s: float = DRAWING_S
    ) -> RoundInputs:
        calls, odd = self.input_maker.calls(count, kinds, drawing_s)
        return RoundInputs(calls, odd, frozenset(kind.name for kind in kinds.values()), self._link(calls[0]))

    def _adversarial_places(self, count: int) -> set[int]:
        """Return the places of adversarial values: never the first call, and at least one where there are more."""
        many = self._adversarial_calls(count)
        return {
            1 + place for place in torch.randperm(max(0, count - 1), generator=self.oracle.generator).tolist()[:many]
        }

    def _adversarial_calls(self, count: int) -> int:
        """Return how many calls of a round of `count` hold adversarial values."""
        if not self._adversarial or count < 2:
            return 0
        return min(count - 1, max(2 if count > _FEW_CALLS else 1, round(_ADVERSARIAL_SHARE * count)))

    def _adversarial_kinds(self) -> list[values.ValueSet]:
        """Return the value sets of timed rounds, in secret order."""
        spare = self.backend.free_bytes()
        if self._stateful or (spare is not None and spare < _ADVERSARIAL_FREE_INPUTS * self.input_bytes):
            return []
        return self.input_maker.kinds(self.input_maker.shuffled(values.TIMED))

    def _linked_outputs(self) -> list[int]:
        """Return the outputs that a chain may read. A captured step always reads the same one, chosen at random."""
        returned = self.typical.targets[: len(self.typical.targets) - len(self._mutated)]
        able = [index for index, target in enumerate(returned) if target.oracle.numel()]
        if self.backend.kind is DeviceKind.CPU or not able:
            return able
        return [able[int(torch.randint(len(able), (1,), generator=self.oracle.generator))]]

    def _link(self, inputs: values.Tensors) -> chain.Link | None:
        if not self._linked:
            return None
        read = self._linked[self.secret_below(len(self._linked))]
        return self.input_maker.link(inputs, read, self.typical.targets[read].oracle.numel())

    def prepare(self, contender: Contender, plan: RoundPlan, *, graph: bool = True) -> Clock:
        """Warm a contender up for rounds like `plan`. Raise Rejection or ComparatorFailed."""
        inputs = self.idle_inputs(plan.calls)
        try:
            return self.backend.prepare(contender.subject.child, self._request(inputs, plan), graph=graph)
        except (ChildFault, LayoutError) as fault:
            raise self._attributed(contender, fault, inputs) from fault

    def prepare_null(self, inputs: RoundInputs, *, graph: bool) -> None:
        self._null.become_null(self.typical.reply)
        request = self._request(inputs, RoundPlan(calls=len(inputs.calls)))
        self.backend.prepare(self._null.child, request, graph=graph)

    def run(
        self,
        contender: Contender,
        inputs: RoundInputs,
        plan: RoundPlan,
        *,
        read: int = 0,
        watch: bool = False,
        watch_at_us: float | None = None,
    ) -> Round:
        """Run one round and read the outputs of its first `read` calls. Raise Rejection or ComparatorFailed."""
        try:
            self._reset_state(contender)
            contender.note_replays(plan.replays)
            with self.session.pools.monitoring_paused():
                look = contender.compared_in_full and read > 0
                watched = {"watch": watch, "watch_at_us": watch_at_us}
                request = self._request(inputs, plan, check=self._check_replies, read=read, look=look, **watched)
                return self.backend.run_round(contender.subject.child, request)
        except (ChildFault, LayoutError, Rejection) as fault:
            raise self._attributed(contender, fault, inputs) from fault

    def _attributed(
        self, contender: Contender, fault: ChildFault | LayoutError | Rejection, inputs: RoundInputs
    ) -> EvaluatorError:
        """Return the error that reports a fault in a round. Raise UnsupportedCase where the reference fails on those
        inputs, too."""
        if isinstance(fault, ChildError) and not fault.loses_device:
            self.oracle.leave_out_if_failing(self.tree, inputs.calls, fault)
        return self.verifier.attribute(contender, fault)

    def _reset_state(self, contender: Contender) -> None:
        """Load the reference's buffers before every round where forward changes buffers. A tensor's version shows a
        load, so the round that is compared must not be the only one with it."""
        if self._stateful or self.moves_buffers:
            contender.subject.load_state(contender.buffers)

    @property
    def null(self) -> Contender:
        """The null child, which returns ready-made outputs, for `run_single_calls`."""
        return Contender("null", self._null, suspect=False, buffers={})

    def run_single_calls(
        self, contender: Contender, inputs: RoundInputs, layouts: Sequence[TensorSpec]
    ) -> SingleCallRound:
        """Run the same calls, unchained, each granted when the one before has returned. Raise Rejection or
        ComparatorFailed."""
        backend = self.backend
        assert isinstance(backend, SingleCallBackend)
        assert inputs.link is None
        try:
            self._reset_state(contender)
            with self.session.pools.monitoring_paused():
                count, look = len(inputs.calls), contender.compared_in_full
                read = compared_calls(contender, count)
                request = self._request(inputs, RoundPlan(calls=count), check=self._check_replies, read=read, look=look)
                return backend.run_single_calls(contender.subject.child, request, layouts)
        except (ChildFault, LayoutError, Rejection) as fault:
            raise self._attributed(contender, fault, inputs) from fault

    def start_profilers(self, contenders: Sequence[Contender]) -> None:
        """Load profilers for `run_plainly`, in all of their children at once."""
        with self.session.pools.monitoring_paused():
            self.backend.start_profilers(*(contender.subject.child for contender in contenders))

    def run_plainly(
        self, contender: Contender, inputs: RoundInputs, plan: RoundPlan, *, profile: bool
    ) -> PlainLoop | None:
        """Time the calls in a plain loop, after a round of that plan. Raise Rejection or ComparatorFailed."""
        request = replace(self._request(inputs, plan), link=None)
        try:
            self._reset_state(contender)
            with self.session.pools.monitoring_paused():
                return self.backend.run_plainly(
                    contender.subject.child, request, call_us=contender.official_us(), profile=profile
                )
        except (ChildFault, LayoutError) as fault:
            raise self._attributed(contender, fault, inputs) from fault

    def run_null(self, inputs: RoundInputs, plan: RoundPlan, *, watch: bool = False) -> Round:
        """Run one round of the null child and read nothing."""
        with self.session.pools.monitoring_paused():
            request = replace(self._request(inputs, plan, read=0, watch=watch), timeout_s=_NULL_ROUND_S)
            return self.backend.run_round(self._null.child, request)

    def _request(self, inputs: RoundInputs, plan: RoundPlan, **how: Any) -> RoundRequest:
        """Return the request for a round on these inputs; `how` holds more of its fields."""
        return RoundRequest(
            calls=inputs.calls, plan=plan, tree=self.tree, timeout_s=self._first_call_s, link=inputs.link, **how
        )

    def _check_replies(self, replies: Sequence[Any]) -> None:
        before = None
        for reply in replies:
            kind = {**reply["tensor"], "address": 0} if "tensor" in reply else reply
            if kind != before:  # nearly all are laid out alike
                check_reply(self.typical, reply)
            before = kind

    def measure_null(self, inputs: RoundInputs, plan: RoundPlan, times: int) -> None:
        """Measure a round's least overhead: empty calls, the chain's steps, everything around them. Without a chain one
        replay is measured: launching empty graphs takes CPU time that a busy device hides."""
        once = replace(plan, instances=1, replays=1 if inputs.link is None else plan.replays)
        for _ in range(times):
            done = self.run_null(inputs, once)
            self.overhead.note(done, plan.executions)


def ends_after(number: int, share: float, *, most: int, fewest: float) -> int:
    """Return the number of replays, at most `most`, after which rehearsal `number` ends. `share` is drawn evenly from
    [0, 1).

    Every second rehearsal ends before `fewest`, the fewest replays of a round so far. A kernel that works in the last
    replay alone has learnt from rounds when that comes, and it skips the replays before it. In turn these rehearsals
    end after any of the replays alike, and log-uniformly: after the third replay as often as in the last fifth.
    """
    bound = int(min(most, fewest))
    if number % 2 or bound <= 2:
        return 1 + int(share * most)
    return int(2 * (bound / 2) ** share) if number % 4 == 0 else 2 + int(share * (bound - 2))


def bounded(plan: RoundPlan, slowest_us: float, factor: float = 1.0) -> RoundPlan:
    """Return a plan of `factor` times the planned round, with fewer replays where a contender with calls of
    `slowest_us` would take seconds for it."""
    most = factor * max(_FEWEST_REPLAYS, int(_LONGEST_ROUND_US / (plan.calls * max(slowest_us, 1e-3))))
    return replace(plan, replays=min(plan.replays, math.ceil(most)))
