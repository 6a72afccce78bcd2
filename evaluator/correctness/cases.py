"""The cases of a Candidate's check: calls with one set of sizes, each with its expected outputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.expected import FIXED_SHAPES, INACCURATE_REFERENCE, VARYING_SHAPES, Expected
from evaluator.correctness import padding, single_inputs
from evaluator.correctness.foreseen import Foreseen, storages
from evaluator.errors import ChildError, ChildFault, Rejection, UnsupportedCase
from evaluator.inputs import layouts, perturbations, structure, values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle import constants
from evaluator.oracle.oracle import Oracle
from evaluator.subject import Subject
from evaluator.types import Candidate, Problem, Stage, Verdict

Change = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
_SEEDS = 2
_CASE_BYTES = 38  # of device memory per byte of a case's inputs: float64 expectations, their scales, work space
_LATER_SETS, _HIDDEN_SETS = 5, 3
_ROUNDING = {one.name: one.rounding for one in values.ADVERSARIAL}
_IN_BOUNDS = frozenset(one.name for one in values.ADVERSARIAL if one.only_finite_results)
_ROUNDING_DECIDES = frozenset(one.name for one in values.ADVERSARIAL if one.only_floats)
_CANDIDATES_PER_SET = 16
_FEW_ELEMENTS, _FEW_SLACK, _VARIED_SLACK = 1024, 4.0, 2.0
RECIPE_CASES = tuple(f"seed {index}" for index in range(_SEEDS))  # names of the recipe's own draws
_EXCHANGED, _MIXED = "two elements exchanged", "a sixteenth of the elements exchanged"
_PEAKS = "the largest elements of a few rows exchanged"
_TOUCHED, _OTHERS = "one element changed", "a mask or indices changed"
_ROTATED = "rows of a mask rotated"
_VALUES = values.NOT_FINITE, values.UNUSUAL
# Changes of the first draw, the slightest first.
TWIN_CASES = *reversed(perturbations.SLIGHT_CHANGES), _EXCHANGED, _MIXED, _PEAKS, _TOUCHED, _ROTATED, _OTHERS


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a check. Cases of one `group` have equal inputs."""

    name: str
    tensors: values.Tensors
    expected: Expected
    group: int
    comparable: bool = True  # False: it is only there for its effect on buffers; its outputs cannot be compared
    nan_spreads: bool = False  # NaN may spread further than in the reference, whose code for such sizes may lose some
    borrowed_limits: bool = False  # limits of another call, perhaps too narrow for this one


@dataclass(frozen=True, slots=True)
class PreparedCases:
    """The reference's part of the check of one set of sizes."""

    oracle: Oracle
    cases: list[Case]
    tree: Any
    skipped: tuple[str, ...] = ()
    foreseen: Foreseen = field(default_factory=Foreseen)

    def bytes_held(self) -> int:
        """Return the device memory that the cases' tensors hold."""
        inputs = [tensor for case in self.cases for tensor in case.tensors]
        targets = [tensor for case in self.cases for target in case.expected.targets for tensor in target.tensors()]
        return sum(storages((*inputs, *targets)).values())


def prepare_cases(
    problem: Problem, reference: Subject, sizes: Sizes, generator: torch.Generator, *, first: bool
) -> PreparedCases | None:
    """Make the cases of one set of sizes: all adversarial values on the `first` sizes, a random choice on later ones.

    Varied sizes get the values that expose reads beyond an edge. Returns None for varied sizes that the reference
    refuses. Raises Rejection where it fails on others, UnsupportedCase where it loses its device on varied ones.
    """
    try:
        return _CaseMaker(problem, reference, sizes, generator).make(first=first)
    except torch.OutOfMemoryError:
        if sizes.adversarial or reference.child.may_lack_memory:
            raise
        return None  # larger than any Workload, and nobody else holds the memory
    except (ChildFault, LayoutError) as fault:
        lost = isinstance(fault, ChildError) and fault.loses_device
        if not sizes.adversarial and (lost or not reference.child.alive):
            raise UnsupportedCase(sizes.label, fault) from fault
        if not sizes.adversarial:
            return None
        raise Rejection(
            Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference fails on {sizes.label}: {fault}"
        ) from fault


class _CaseMaker:
    def __init__(self, problem: Problem, reference: Subject, sizes: Sizes, generator: torch.Generator) -> None:
        self.reference, self.sizes, self.generator = reference, sizes, generator
        self.oracle = Oracle(problem, reference, sizes.sizes, generator)
        self.skipped: list[str] = []

    def make(self, *, first: bool) -> PreparedCases | None:
        """Return None if the layout of these sizes does not apply to the inputs."""
        made = [self.oracle.inputs() for _ in range(_SEEDS)]
        tree, draws = made[0].tree, [arguments.tensors for arguments in made]
        seeds = draws if self.sizes.adversarial else draws[:1]
        usual = [(name, layouts.laid_out(d, self.sizes.layout)) for name, d in zip(RECIPE_CASES, seeds, strict=False)]
        if self.sizes.layout and all(map(operator.is_, usual[0][1], draws[0])):
            return None
        changed = self._changed(tree, draws, first=first)
        arrange = self._in_order if self.oracle.stateful(tree, usual[0][1]) else self._shuffled
        try:
            cases = arrange(tree, [*usual, *changed])
        except ChildError as fault:  # perhaps because of values that no draw has
            if fault.loses_device and not self.sizes.adversarial:
                raise  # these sizes can be left out
            self.oracle.leave_out_if_fatal(fault)
            taken = [(n, tensors) for n, tensors in changed if self.oracle.try_calls(tree, [tensors]) is not None]
            self.skipped += [f"{self.sizes.shown_label}: {name}" for name, _ in changed if name not in dict(taken)]
            cases = arrange(tree, [*usual, *taken])
        return PreparedCases(self.oracle, cases, tree, tuple(self.skipped))

    def _changed(self, tree: Any, draws: Sequence[values.Tensors], *, first: bool) -> list[tuple[str, values.Tensors]]:
        """Return changed inputs that the recipe does not draw, with the structure of the draws."""
        tensors, kept, left_out = draws[0], structure.find_structures(draws), self.reference.left_out
        named: list[tuple[str, values.Tensors]] = []
        if self.sizes.adversarial:
            twin = perturbations.near_duplicate(tensors, [True] * len(tensors), self.generator)
            named.append((_EXCHANGED, structure.restored(self._with_drawn(draws, _two_exchanged), kept)))
            named.append((_MIXED, structure.restored(self._with_drawn(draws, _some_exchanged), kept)))
            named.append((_PEAKS, structure.restored(self._with_drawn(draws, _peaks_exchanged), kept)))
            named.append((_TOUCHED, structure.restored(twin, kept)))
            named += self._slightly_changed(tensors, kept)
        self.skipped += [f"{self.sizes.shown_label}: {label}" for label in left_out if label in _VALUES]
        if values.UNUSUAL in left_out:
            return named
        sets = self._within_memory(self._sets(tensors, first=first), tensors)
        named += [(s.name, structure.apply_values(tensors, s, kept, self.generator)) for s in sets]
        if not self.sizes.adversarial:
            return named
        extremes = perturbations.extremes(draws)
        if extremes is not None:
            named.append(("rows of the largest and of the smallest integers", structure.restored(extremes, kept)))
        shared = single_inputs.with_shared_rows(tensors, kept, self.generator) if first else None
        named += [("rows of one input in another", shared)] if shared is not None else []
        if first and values.NOT_FINITE not in left_out:
            named += single_inputs.single_input_changes(tensors, kept, self.generator)
        for name, change in (
            ("integers most of which are alike", constants.skewed),
            ("padded masks", padding.with_padding),
            (_ROTATED, padding.with_rotated_rows),
        ):
            made = change(self.oracle, tree, draws)
            if made is not None:
                named.append((name, made))
        others = constants.find_constants(self.oracle, tree, draws)
        return [*named, (_OTHERS, others.changed(tensors))] if others else named

    def _slightly_changed(
        self, tensors: values.Tensors, kept: Sequence[structure.Structure]
    ) -> Iterator[tuple[str, values.Tensors]]:
        """Yield inputs with every element changed slightly: a cache that compares inputs up to a tolerance takes the
        result for equal."""
        for name, share in perturbations.SLIGHT_CHANGES.items():
            made = tuple(perturbations.all_slightly_smaller(tensor, self.generator, share) for tensor in tensors)
            if any(map(operator.is_not, made, tensors)):
                yield name, structure.restored(made, kept)

    def _with_drawn(self, draws: Sequence[values.Tensors], change: Change) -> values.Tensors:
        """Return a draw with a change in each tensor that varies between draws."""
        return tuple(
            change(one, self.generator) if one.numel() and not values.same_bits(one, other) else one
            for one, other in zip(*draws[:2], strict=True)
        )

    def _shuffled(self, tree: Any, named: Sequence[tuple[str, values.Tensors]]) -> list[Case]:
        rounding = [_ROUNDING.get(name, values.Rounding()) for name, _ in named]
        found = self.oracle.expect(tree, [tensors for _, tensors in named], rounding)
        self._require_informative(named, found)
        varied = not self.sizes.adversarial
        pairs = enumerate(zip(named, found, strict=True))
        cases = [
            Case(n, t, _loosened(e, varied), i, nan_spreads=varied and not all(map(values.is_finite, t)))
            for i, ((n, t), e) in pairs
            if self._is_comparable(n, e)
        ]
        # The first case comes three times at secret positions: equal inputs must give equal outputs.
        cases += [Case("repeated", cases[0].tensors, cases[0].expected, cases[0].group)] * 2 if cases else []
        return values.shuffled(cases, self.generator)

    def _in_order(self, tree: Any, named: Sequence[tuple[str, values.Tensors]]) -> list[Case]:
        """Order the cases of a module with state: values that spoil its state for good come last."""
        mixed = values.shuffled(named, self.generator)
        ordered = sorted(mixed, key=lambda pair: not all(map(values.is_finite, pair[1])))
        rounding = [_ROUNDING.get(name, values.Rounding()) for name, _ in ordered]
        found = self.oracle.expect(tree, [tensors for _, tensors in ordered], rounding)
        self._require_informative(ordered, found)
        pairs = enumerate(zip(ordered, found, strict=True))
        return [Case(n, t, e, i, comparable=self._is_comparable(n, e)) for i, ((n, t), e) in pairs]

    def _is_comparable(self, name: str, expected: Expected) -> bool:
        """Return True if outputs of the case `name` can be compared with the expected ones."""
        if name in _ROUNDING_DECIDES and (self.oracle.subject.selects or any(t.integral for t in expected.targets)):
            return False
        in_bounds = name not in _IN_BOUNDS or all(t.integral or t.finite for t in expected.targets)
        return expected.informative and in_bounds

    def _require_informative(self, named: Sequence[tuple[str, values.Tensors]], found: Sequence[Expected]) -> None:
        """Raise Rejection where any output would pass on the recipe's own inputs of a Workload, or where values of
        floating-point inputs decide the shapes of outputs: a kernel derives these from the shapes of its inputs."""
        if not self.sizes.adversarial:
            return
        own = [e for (n, _), e in zip(named, found, strict=True) if n in RECIPE_CASES]
        others = [e.shapes for (n, _), e in zip(named, found, strict=True) if n in RECIPE_CASES or n in _ROUNDING]
        differ = [shapes for shapes in others if shapes != own[0].shapes]
        if differ:
            shapes = "" if self.sizes.hidden else f" ({own[0].shapes} and {differ[0]})"
            self._unusable(f"{VARYING_SHAPES}{shapes}: {FIXED_SHAPES}")
        if not any(e.complete for e in own):
            self._unusable(INACCURATE_REFERENCE)

    def _unusable(self, why: str) -> NoReturn:
        raise Rejection(Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"on {self.sizes.label} {why}")

    def _sets(self, tensors: values.Tensors, *, first: bool) -> list[values.ValueSet]:
        """Return the value sets that suit the inputs: at varied sizes a few, and one more in turn."""
        if self.sizes.layout:
            return []
        usable = partial(values.usable_sets, left_out=self.reference.left_out, tensors=tensors)
        if self.sizes.adversarial:
            return usable(values.ADVERSARIAL if first else self._random_sets())
        few = usable(values.AT_OTHER_SIZES)
        others = [one for one in usable(values.ADVERSARIAL) if one not in few]
        return [*few, *values.in_turn(others, self.reference.value_sets, self.generator)]

    def _random_sets(self) -> list[values.ValueSet]:
        count = _LATER_SETS if not self.sizes.hidden else _HIDDEN_SETS
        order = torch.randperm(len(values.ADVERSARIAL), generator=self.generator).tolist()
        picked = [values.ADVERSARIAL[index] for index in sorted(order[:count])]
        return [*picked, *(one for one in values.AT_EDGES if one not in picked)]

    def _within_memory(self, sets: Sequence[values.ValueSet], tensors: values.Tensors) -> list[values.ValueSet]:
        """Return as many random value sets as fit in the device's memory; smaller sizes get all of them."""
        spare = self.reference.backend.free_bytes()
        if spare is None:
            return list(sets)
        case_bytes = _CASE_BYTES * sum(t.numel() * t.element_size() for t in tensors)
        count = max(1, spare // 2 // max(1, case_bytes) - _SEEDS - 1)
        if count < len(sets):
            label = self.sizes.shown_label
            self.skipped.append(f"{label}: {len(sets) - count} value sets, not enough device memory")
        picked = torch.randperm(len(sets), generator=self.generator).tolist()[:count]
        return [sets[i] for i in sorted(picked)]


def _two_exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Exchange two elements: a cache keyed by a tensor's ends, sum or maximum takes the result for equal."""
    real = tensor.is_floating_point() or tensor.is_complex()
    return (perturbations.with_two_swapped if real else constants.with_two_swapped)(tensor, generator)


def _some_exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Exchange many elements: where the few largest inputs decide the outputs, as in softmax, exchanging two is rarely
    visible."""
    real = tensor.is_floating_point() or tensor.is_complex()
    return perturbations.with_some_swapped(tensor, generator) if real else tensor


def _peaks_exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Exchange the largest elements of a few rows: visible in softmax, and a cache keyed by samples rarely sees it."""
    return perturbations.with_peaks_swapped(tensor, generator) if tensor.is_floating_point() else tensor


def _loosened(expected: Expected, varied: bool) -> Expected:
    """Loosen the limits at varied sizes: wrong outputs are far off there, and a few elements are a poor sample of an
    honest implementation's error."""
    few = all(target.oracle.numel() < _FEW_ELEMENTS for target in expected.targets)
    return expected.with_slack(_FEW_SLACK if few else _VARIED_SLACK) if varied else expected


@dataclass(slots=True)
class _Entry:
    prepared: PreparedCases
    parameters: dict[str, torch.Tensor]
    bytes_held: int = 0
    seen_by: set[str] = field(default_factory=set)


class CaseCache:
    """Cases of recent Problems, by sizes, each for up to sixteen Candidates in turn.

    Computing the expected outputs is half of the time that a check takes. No Candidate sees the same cases
    twice, since files that it leaves behind reach its later children. Between Candidates only the facts in verdicts
    pass, an element at a time. Never kept: held-out sizes, timed inputs, the cases of a module with buffers.
    """

    def __init__(self, most_bytes: int, has_room: Callable[[], bool] = lambda: True) -> None:
        """Keep at most so many bytes, and take nothing while `has_room` denies that others' memory suffices."""
        self._most_bytes, self._has_room = most_bytes, has_room
        self._entries: dict[tuple[str, str], _Entry] = {}

    def take(
        self, problem: Problem, candidate: Candidate, sizes: Sizes, reference: Subject, generator: torch.Generator
    ) -> PreparedCases | None:
        """Return cases that this Candidate has not seen, in a new order, or None.

        The reference is constructed as it was for them; raises Rejection where that fails.
        """
        kept = self._entries.get((problem.hash, sizes.label))
        if kept is None or candidate.hash in kept.seen_by:
            return None
        kept.seen_by.add(candidate.hash)
        if len(kept.seen_by) >= _CANDIDATES_PER_SET:
            del self._entries[problem.hash, sizes.label]
        try:
            kept.prepared.oracle.construct_again(reference, kept.parameters, generator)
        except (ChildFault, LayoutError) as fault:
            self._entries.pop((problem.hash, sizes.label), None)
            raise Rejection(
                Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference fails on {sizes.label}: {fault}"
            ) from fault
        return replace(kept.prepared, cases=values.shuffled(kept.prepared.cases, generator))

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Return whether cases of a Problem (its hash) and sizes (their label) are kept."""
        return key in self._entries

    def put(self, problem: Problem, candidate: Candidate | None, sizes: Sizes, prepared: PreparedCases | None) -> bool:
        """Keep the cases of this Candidate (None: of none yet) for others, and return whether they fit.

        Those of other Problems make room. Those of the same do not: they are wanted as soon.
        """
        if prepared is None or sizes.hidden or prepared.oracle.buffers:
            return False
        key, seen = (problem.hash, sizes.label), {candidate.hash} if candidate is not None else set()
        kept = _Entry(prepared, dict(prepared.oracle.parameters), seen_by=seen)
        if not self._reserve(key, kept, prepared.bytes_held()):
            return False
        self._entries[key] = kept
        # By the key alone: a cycle of references would hold a device's memory until Python looks for cycles.
        prepared.foreseen.reserve = lambda more: key in self._entries and self._reserve(key, self._entries[key], more)
        return True

    def _reserve(self, key: tuple[str, str], kept: _Entry, more: int) -> bool:
        """Let an entry hold so many bytes more if they fit."""
        entries = {**self._entries, key: kept}
        if more > 0:
            own = sum(one.bytes_held for (of, _), one in entries.items() if of == key[0])
            if own + more > self._most_bytes or not self._has_room():
                return False
        kept.bytes_held += more
        others = [other for other in self._entries if other[0] != key[0]]
        held = sum(one.bytes_held for one in entries.values())
        while held > self._most_bytes:
            held -= self._entries.pop(others.pop(0)).bytes_held
        return True

    def clear(self) -> None:
        """Forget everything, since a lost device has lost its memory."""
        self._entries.clear()
