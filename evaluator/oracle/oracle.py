"""The oracle: runs the reference in its own caged child, at its own precision and in float64."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from evaluator.comparison.claims import tensor_claims
from evaluator.comparison.expected import Expected
from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit
from evaluator.errors import ChildError, UnsupportedCase
from evaluator.inputs import perturbations, values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle import units, vanishing
from evaluator.oracle.reference_model import CALL_S, ReferenceModel
from evaluator.oracle.state import ParameterScaling, scaled_parameters, scaled_statistics
from evaluator.subject import Lifting, Result, Subject
from evaluator.types import Problem, canonical_json

_SLOW_CALL_S = 0.1  # longer calls are timed twice before they widen limits
_UNPERTURBED = Lifting()
_FEW_ELEMENTS, _FEW_BYTES, _MORE_DRAWS = 16, 32 << 20, 2  # of an output; of its call's inputs; more perturbations then
_ONE_RUN_BYTES = 768 << 20  # of inputs: smaller lists of calls share one run
# Far from the initial parameters two good orders of the same sums differ more: a scan step by step adds up what one in
# chunks has as the exponent of a sum.
_SCALED_SLACK = 2.0


class Oracle(ReferenceModel):
    """Gives the Model's outputs for inputs and parameters, and limits from the errors of an honest implementation.

    `together_bytes` limits the inputs of the calls whose limits are computed at once.
    """

    together_bytes = 256 << 20

    def __init__(
        self, problem: Problem, subject: Subject, sizes: Mapping[str, Any], generator: torch.Generator
    ) -> None:
        super().__init__(problem, subject, sizes, generator)
        self.in_float64 = True  # False once the reference fails in float64
        self.slowest_call_s = 0.0  # as part of a run
        self._stateful: bool | None = None if self.buffers else False
        self._own_constants: bool | None = None  # True: constants stay in the reference's precision
        self._vanishing: frozenset[int] | None = None  # outputs of which float64 leaves nothing
        self._on_grid: bool | None = None  # True: draws lie on thresholds of comparisons

    @property
    def precision(self) -> str:
        """The oracle's precision, for the evidence; known after the first call."""
        if self.in_float64:
            return "float64"
        return "the reference at its own precision: it does something that has no float64 counterpart"

    @contextlib.contextmanager
    def with_scaled_state(
        self, how: ParameterScaling, tree: Any, calls: Sequence[values.Tensors]
    ) -> Iterator[list[tuple[values.Tensors, Expected]]]:
        """Give the module parameters and statistics far from their first values, within the context.

        The context's value lists the calls with finite, informative results, each with its expected result.
        """
        usual = self.parameters, self.buffers
        try:
            yield self._expect_scaled(how, tree, calls) if self._initial_parameters or self.buffers else []
        finally:
            self.load(*usual)

    def _expect_scaled(
        self, how: ParameterScaling, tree: Any, calls: Sequence[values.Tensors]
    ) -> list[tuple[values.Tensors, Expected]]:
        far = scaled_parameters(self.parameters, how, self.generator)
        self.load(far, scaled_statistics(self.buffers, self._initial_buffers, self.subject.nontrivial_buffers))
        tried = self.try_calls(tree, calls) or []
        able = [call for call, (_, own) in zip(calls, tried, strict=False) if all(map(values.is_finite, own))]
        found = zip(able, self.expect(tree, able), strict=True) if able else ()
        return [
            (call, one.with_slack(_SCALED_SLACK))
            for call, one in found
            if one.informative and all(t.integral or t.finite for t in one.targets)
        ]

    def expect_at(self, sizes: Sizes) -> tuple[Any, values.Tensors, Expected] | None:
        """Return inputs of other sizes for the same module and its expected result; None where the reference does not
        take them. Raise UnsupportedCase."""
        try:
            made = self.subject.recipe("get_inputs", sizes.sizes, self._seed())
            self._run_as_is(made.tree, [made.tensors])
        except ChildError as fault:
            if fault.loses_device:
                raise UnsupportedCase(sizes.label, fault) from fault
            return None
        (expected,) = self.expect(made.tree, [made.tensors])
        return (made.tree, made.tensors, expected) if expected.informative else None

    def stateful(self, tree: Any, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether a call's result depends on the buffers that earlier calls changed. Then every list of calls
        begins with the reference's initial buffers, and its order matters."""
        if self._stateful is None:
            self._stateful = False
            if self.changes_buffers(tree, tensors):
                self.subject.load_state(self.buffers)
                (_, first), (_, second) = self._run_as_is(tree, [tensors, tensors])
                self._stateful = any(not values.same_bits(a, b) for a, b in zip(first, second, strict=True))
        return self._stateful

    def state_bytes(self, tree: Any, tensors: Sequence[torch.Tensor]) -> int:
        """Return the bytes of parameters and buffers that a call of the reference reads, each once.

        Those that it does not read do not count, and of a table that it looks up only the rows that it takes.
        """
        known, sizes = self._subject.state_bytes, canonical_json(self.sizes)
        if sizes not in known:
            read = self.subject.read_state_bytes(tree, tensors, timeout_s=CALL_S)
            whole = values.bytes_of([*self.parameters.values(), *self.buffers.values()])
            known[sizes] = whole if read is None else read
        return known[sizes]

    def expect(
        self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], rounding: Sequence[values.Rounding] = ()
    ) -> list[Expected]:
        """Return the expected result of each call.

        Limits follow from the reference's own error and the task's conditioning: how far outputs move with inputs and
        with the results of sums. `rounding` tells for each call how the rounding of a good implementation may show.
        """
        how = list(rounding or [values.Rounding()] * len(calls))
        if calls:
            self.stateful(tree, calls[0])
            if self._on_grid is None:  # the first call is always a draw
                self._on_grid = values.on_grid(calls[0])
            how = [replace(one, on_grid=one.on_grid or self._on_grid) for one in how]
        found = [
            expected
            for some in self._together(calls)
            for expected in self._expect_together(tree, calls[some], how[some])
        ]
        if self._own_constants is None and calls:  # the first call is a draw: is it informative?
            self._own_constants = self.in_float64 and not found[0].complete
            if self._own_constants:  # it may be with constants in the reference's precision
                other = self.expect(tree, calls, rounding)
                self._own_constants, self.in_float64 = self.in_float64 and other[0].complete, True
                found = other if self._own_constants else found
        return found

    def _together(self, calls: Sequence[Sequence[torch.Tensor]]) -> Iterator[slice]:
        """Yield the slices of `calls` to compute at once: all of them where they are small or state connects them.

        The float64 results for one call take up to sixteen times the bytes of its inputs until its limits are known.
        """
        begin, size = 0, 0
        for index, call in enumerate(calls):
            more = sum(tensor.numel() * tensor.element_size() for tensor in call)
            if index > begin and size + more > self.together_bytes and not self._stateful:
                yield slice(begin, index)
                begin, size = index, 0
            size += more
        yield slice(begin, len(calls))

    def _expect_together(
        self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], how: Sequence[values.Rounding]
    ) -> list[Expected]:
        nudged = [perturbations.perturb_last_places(c, self.generator, r) for c, r in zip(calls, how, strict=True)]
        own = self._run_as_is(tree, calls)
        again = [index for index, result in enumerate(own) if self._is_of_few_elements(result, calls[index])]
        more = [perturbations.perturb_last_places(calls[i], self.generator, how[i]) for i in again * _MORE_DRAWS]
        wide, moved, moved_again = self._run_groups_in_float64(tree, [calls, nudged, more])
        if wide is None:  # the reference is its own oracle: its response to perturbed inputs still counts
            wide, moved = own, self._run_as_is(tree, nudged)
        # Separately from perturbed inputs: the two errors could cancel.
        of = self._units(calls, own)
        perturbed = self._run_perturbed(tree, calls, of, Lifting(1.0, weights=_common_half_dtype(own))) or wide
        near = [[*two] for two in zip(moved or wide, perturbed, strict=True)]
        extra = zip(again * _MORE_DRAWS, moved_again or [], strict=False)
        for index, rounded in (*extra, *self._rounded_everywhere(tree, calls, how, of)):
            near[index].append(rounded)
        if places := self._find_vanishing(tree, own, wide, nudged):
            rounded_own = self._run_as_is(tree, nudged)
            wide = vanishing.with_own(wide, own, places)
            near = [
                vanishing.with_own(some, [mine] * len(some), places)
                for some, mine in zip(near, rounded_own, strict=True)
            ]
        changed = self.mutated(tree)
        found = [self._make_expected(*four, changed) for four in zip(own, wide, near, calls, strict=True)]
        for index, one in enumerate(how):
            if one.sums_optional and not found[index].informative:
                found[index] = self._make_expected(own[index], wide[index], near[index][:1], calls[index], changed)
        return found

    def _find_vanishing(
        self,
        tree: Any,
        own: Sequence[Result],
        wide: Sequence[Result],
        nudged: Sequence[Sequence[torch.Tensor]],
    ) -> frozenset[int]:
        """Return the places of outputs that float64 leaves nothing of, and that the reference's own stand in for."""
        if self._vanishing is None and own:  # the first call is always a draw
            places = vanishing.candidates(own[0], wide[0])
            rounded = self._run_as_is(tree, nudged[:1]) if places else own
            self._vanishing = vanishing.well_defined(places, own[0], rounded[0])
        return self._vanishing or frozenset()

    @property
    def has_vanishing_outputs(self) -> bool:
        """Return whether the reference's own results stand in for an output that float64 leaves nothing of."""
        return bool(self._vanishing)

    def expect_strictly(
        self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], others: Sequence[Sequence[torch.Tensor]]
    ) -> tuple[list[Expected], list[Result]]:
        """Return what to expect of `calls`, with limits from the reference's own error alone, and the results of
        `others` in float64, for `with_limits_of`.

        An output within these limits is within those of `expect`, which are never narrower and take several times as
        long. Both lists are computed in the same runs of the reference.
        """
        if not calls:
            return [], self._widest(tree, others)
        own = self._run_as_is(tree, calls)
        wide, beside = self._run_groups_in_float64(tree, [calls, others])
        changed = self.mutated(tree)
        triples = zip(own, vanishing.with_own(wide or own, own, self._vanishing or ()), calls, strict=True)
        found = [self._make_expected(mine, right, (), inputs, changed) for mine, right, inputs in triples]
        return found, beside if beside is not None else self._run_as_is(tree, others)

    def _widest(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> list[Result]:
        """Return results in float64, or the reference's own where it cannot be run so."""
        return (self._run_in_float64(tree, calls) or self._run_as_is(tree, calls)) if calls else []

    def _is_of_few_elements(self, result: Result, call: Sequence[torch.Tensor]) -> bool:
        """Return whether one perturbation of a call's inputs may leave its few outputs where they were by chance."""
        few = any(0 < tensor.numel() < _FEW_ELEMENTS and tensor.is_floating_point() for tensor in result[1])
        return few and not self._stateful and sum(t.numel() * t.element_size() for t in call) <= _FEW_BYTES

    def _rounded_everywhere(
        self,
        tree: Any,
        calls: Sequence[Sequence[torch.Tensor]],
        how: Sequence[values.Rounding],
        of: Sequence[float],
    ) -> list[tuple[int, Result]]:
        """Return results in which every operation rounds, up and then down, by index of the call.

        They are made for calls with values on thresholds: a threshold on an input itself is met exactly, one on a
        computed value may be met or not. So they are for calls in float64, too, where the oracle rounds like the
        reference and does not show cancellation.
        """
        asked = [index for index, one in enumerate(how) if one.on_grid or units.FLOAT64 in of]
        some = [calls[index] for index in asked]
        found: list[tuple[int, Result]] = []
        for shake in (1.0, -1.0) if some else ():
            shaken = self._run_perturbed(tree, some, of, Lifting(shake, everywhere=True))
            found += zip(asked, shaken or [], strict=False)
        return found

    def repeat(self, tree: Any, tensors: Sequence[torch.Tensor]) -> list[Result]:
        """Return the results of two more calls at the reference's own precision; each is the first call of a module
        with state."""
        if self.stateful(tree, tensors):
            return [*self._run_as_is(tree, [tensors]), *self._run_as_is(tree, [tensors])]
        return self._run_as_is(tree, [tensors, tensors])

    def repeat_anew(self, tree: Any, tensors: Sequence[torch.Tensor]) -> list[Result]:
        """Return the results of two more calls of a module that another seed made and that has the same state."""
        self.construct_again(self.subject, self.parameters, self.generator)
        return self.repeat(tree, tensors)

    def try_calls(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> list[Result] | None:
        """Return results at the reference's own precision; None where a call raises.

        Raise ChildFault where the process ends, UnsupportedCase where the values end it.
        """
        try:
            return self._run_as_is(tree, calls)
        except ChildError as fault:
            self.leave_out_if_fatal(fault)
            return None

    def leave_out_if_fatal(self, fault: ChildError) -> None:
        """Raise UnsupportedCase where a tried call cost the reference its device.

        Values that are not finite are left out first, then all that no draw holds. Where these are left out, the call
        was a draw.
        """
        if fault.loses_device:
            self._leave_out(fault)

    def leave_out_if_failing(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], fault: ChildError) -> None:
        """Raise UnsupportedCase where the reference, too, fails in one of the calls in which a Candidate failed.

        The reference took other values of their kind. Where such values are left out, a failure on a draw counts.
        """
        if any(self.try_calls(tree, [call]) is None for call in calls):
            self._leave_out(fault)

    def _leave_out(self, fault: ChildError) -> None:
        more = [label for label in (values.NOT_FINITE, values.UNUSUAL) if label not in self.subject.left_out]
        if more:
            raise UnsupportedCase(more[0], fault) from fault

    def targets(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], like: Expected) -> list[Expected]:
        """Return what to expect of calls, with the limits of an earlier one.

        That is one run of the reference instead of three.
        """
        return self.with_limits_of(tree, like, self._widest(tree, calls), calls)

    def with_limits_of(
        self, tree: Any, like: Expected, wide: Sequence[Result], calls: Sequence[Sequence[torch.Tensor]]
    ) -> list[Expected]:
        """Return Expected of these results in float64, with the limits of `like`.

        Integers may be roundings of computed numbers, so the reference's own are as good as the oracle's. The same
        holds where the oracle's numbers are too large for their type.
        """
        vanishes = self._vanishing or frozenset()
        asked = [
            one.integral or place in vanishes or any(one.overflows(tensors[place]) for _, tensors in wide)
            for place, one in enumerate(like.targets)
        ]
        own = self._run_as_is(tree, calls) if any(asked) and calls else wide
        wide = vanishing.with_own(wide, own, vanishes)
        return [
            replace(
                like,
                targets=tuple(
                    Target(t, mine if both else None, inputs)
                    for t, mine, both in zip(tensors, others, asked, strict=True)
                ),
            )
            for (_, tensors), (_, others), inputs in zip(wide, own, calls, strict=True)
        ]

    def _run_as_is(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> list[Result]:
        found, call_s = self._run_timed(tree, calls)
        if call_s > max(_SLOW_CALL_S, self.slowest_call_s):
            # A machine that stood still for seconds would widen a Candidate's limits to minutes: the shorter counts.
            call_s = min(call_s, self._run_timed(tree, calls)[1])
        self.slowest_call_s = max(self.slowest_call_s, call_s)
        return found

    def _run_timed(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> tuple[list[Result], float]:
        """Return the reference's own results and the seconds of a call."""
        if self._stateful:
            self.subject.load_state(self.buffers)
        start = time.perf_counter()
        found = self.subject.results(tree, calls, timeout_s=CALL_S, mutates=self.mutated(tree))
        return found, (time.perf_counter() - start) / max(1, len(calls))

    def _run_in_float64(
        self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], how: Lifting = _UNPERTURBED
    ) -> list[Result] | None:
        if not self.in_float64:
            return None
        if self._stateful:
            self.subject.load_state(self.buffers)
        try:
            lift, mutates = self._with_constants(how), self.mutated(tree)
            return self.subject.results(tree, calls, timeout_s=CALL_S, lift=lift, mutates=mutates)
        except ChildError:
            if how.shake:  # a failure there tells nothing of float64
                return self._run_in_float64(tree, calls)
            self.in_float64 = False  # the reference becomes its own oracle
            return None

    def _with_constants(self, how: Lifting = _UNPERTURBED) -> Lifting:
        return replace(how, own_constants=self._own_constants is True)

    def try_in_float64(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> list[Result] | None:
        """Return results in float64, or else at the reference's own precision. None where a call raises, which tells
        nothing of float64."""
        lifts = self.in_float64
        try:
            return self._widest(tree, calls)
        except ChildError:
            self.in_float64 = lifts
            return None

    def _run_groups_in_float64(
        self, tree: Any, groups: Sequence[Sequence[Sequence[torch.Tensor]]]
    ) -> list[list[Result] | None]:
        """Run several lists of calls in float64: together where they are small, since every run costs milliseconds."""
        every = [call for calls in groups for call in calls]
        size = sum(tensor.numel() * tensor.element_size() for call in every for tensor in call)
        if self.in_float64 and not self._stateful and size <= _ONE_RUN_BYTES:
            with contextlib.suppress(ChildError):  # runs of single lists tell which one fails
                lift, mutates = self._with_constants(), self.mutated(tree)
                found = iter(self.subject.results(tree, every, timeout_s=CALL_S, lift=lift, mutates=mutates))
                return [[next(found) for _ in calls] for calls in groups]
        return [self._run_in_float64(tree, calls) if calls else [] for calls in groups]

    def _units(self, calls: Sequence[Sequence[torch.Tensor]], own: Sequence[Result]) -> list[float]:
        """Return the unit of rounding of sums, for each output."""
        given = (*self.parameters.values(), *self.buffers.values(), *(tensor for call in calls[:1] for tensor in call))
        return units.units_of(given, own[0][1] if own else [])

    def _run_perturbed(
        self, tree: Any, calls: Sequence[Sequence[torch.Tensor]], of: Sequence[float], how: Lifting
    ) -> list[Result] | None:
        """Run in float64 with sums that are off by `how.shake` times the unit `of` each output."""
        runs = {}
        for unit in dict.fromkeys(of):
            found = self._run_in_float64(tree, calls, replace(how, shake=how.shake * unit))
            if found is None:
                return None
            runs[unit] = found
        return units.merged(runs, of) if runs else None

    def _make_expected(
        self,
        own: Result,
        wide: Result,
        near: Sequence[Result],
        inputs: Sequence[torch.Tensor],
        changed: tuple[int, ...],
    ) -> Expected:
        """Return what to expect of one call. An honest implementation may be as far from the oracle as any of the
        results `near`."""
        self.subject.yield_device()
        targets, limits = [], []
        for mine, oracle, *others in zip(own[1], wide[1], *(tensors for _, tensors in near), strict=True):
            target = Target(oracle, mine, inputs)
            limit = Limit(0.0, 0.0)
            if not target.integral:
                good = [target.reference_error(), *(target.errors_in_float64(other) for other in others)]
                norm, element = (max(errors) for errors in zip(*good, strict=True))
                limit = target.limit(norm, element, mine.dtype, self.problem.precision, self.problem.error_budget)
                limit = Limit(math.inf, math.inf) if target.uninformative(limit) else limit
            targets.append(target)
            limits.append(limit)
        dtypes = tuple(str(claim.get("dtype")) for claim in tensor_claims(own[0]))
        return Expected(own[0], tuple(targets), tuple(limits), dtypes, changed)


def _common_half_dtype(results: Sequence[Result]) -> str:
    """Return the half precision that all floating outputs share, "" where they share none."""
    dtypes = {t.dtype for _, tensors in results[:1] for t in tensors if t.is_floating_point() or t.is_complex()}
    one = dtypes.pop() if len(dtypes) == 1 else None
    return str(one).removeprefix("torch.") if one in (torch.float16, torch.bfloat16) else ""
