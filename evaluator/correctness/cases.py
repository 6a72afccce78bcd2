"""What a Candidate is tried on: calls of one set of sizes, each with what it must return."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.expected import FIXED_SHAPES, SHAPES_DEPEND, TELLS_NOTHING, Expected
from evaluator.correctness import padding, single_inputs
from evaluator.errors import ChildError, ChildFault, LeaveOut, Rejection
from evaluator.inputs import layouts, structure, values
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
_IN_BOUNDS = frozenset(one.name for one in values.ADVERSARIAL if one.in_bounds)
_MOST_CANDIDATES = 16
_FEW_ELEMENTS, _FEW_SLACK, _BESIDE_SLACK = 1024, 4.0, 2.0
OWN = tuple(f"seed {index}" for index in range(_SEEDS))  # the names of what the recipe makes
_EXCHANGED, _MIXED = "two elements exchanged", "a sixteenth of the elements exchanged"
_TOUCHED, _OTHERS = "one element changed", "a mask or indices changed"
_VALUES = values.NOT_FINITE, values.UNUSUAL
TWINS = _EXCHANGED, _MIXED, _TOUCHED, _OTHERS  # of the first of those


@dataclass(frozen=True, slots=True)
class Case:
    """One call that a Candidate is tried on. Cases whose `same` is the same have equal inputs."""

    name: str
    tensors: values.Tensors
    expected: Expected
    same: int
    counts: bool = True  # else it is there for what it leaves in buffers: nothing can be compared with its answer
    nan_spreads: bool = False  # further than in the reference, too: its own ways for such sizes may lose some
    borrowed: bool = False  # its limits are those of another call, and perhaps too narrow for this one


@dataclass(frozen=True, slots=True)
class Prepared:
    """What one set of sizes is checked with: all of it the reference's work."""

    oracle: Oracle
    cases: list[Case]
    tree: Any
    skipped: tuple[str, ...] = ()

    def bytes_held(self) -> int:
        """Of device memory, by tensors."""
        inputs = [tensor for case in self.cases for tensor in case.tensors]
        targets = [tensor for case in self.cases for target in case.expected.targets for tensor in target.held()]
        stored = (tensor.untyped_storage() for tensor in (*inputs, *targets))
        return sum({storage.data_ptr(): storage.nbytes() for storage in stored}.values())


def prepared(
    problem: Problem, reference: Subject, sizes: Sizes, generator: torch.Generator, *, first: bool
) -> Prepared | None:
    """Calls and what is right for them; on the `first` sizes all adversarial values, else some that nobody can tell
    beforehand, on varied sizes those that show what is read behind an edge. None for varied sizes that the reference
    refuses. Raises Rejection where it fails on others."""
    try:
        return _Maker(problem, reference, sizes, generator).make(first=first)
    except (ChildFault, LayoutError) as fault:
        if not sizes.adversarial and isinstance(fault, ChildError) and fault.spoils:
            raise LeaveOut(sizes.label, fault) from fault
        if not sizes.adversarial and reference.child.alive:
            return None
        raise Rejection(
            Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference fails on {sizes.label}: {fault}"
        ) from fault


class _Maker:
    def __init__(self, problem: Problem, reference: Subject, sizes: Sizes, generator: torch.Generator) -> None:
        self.reference, self.sizes, self.generator = reference, sizes, generator
        self.oracle = Oracle(problem, reference, sizes.sizes, generator)
        self.skipped: list[str] = []

    def make(self, *, first: bool) -> Prepared | None:
        """None where the inputs cannot be laid out so."""
        made = [self.oracle.inputs() for _ in range(_SEEDS)]
        tree, draws = made[0].tree, [arguments.tensors for arguments in made]
        seeds = draws if self.sizes.adversarial else draws[:1]
        usual = [(name, layouts.laid_out(d, self.sizes.layout)) for name, d in zip(OWN, seeds, strict=False)]
        if self.sizes.layout and all(map(operator.is_, usual[0][1], draws[0])):
            return None
        changed = self._changed(tree, draws, first=first)
        arrange = self._in_order if self.oracle.stateful(tree, usual[0][1]) else self._shuffled
        try:
            cases = arrange(tree, [*usual, *changed])
        except ChildError as fault:  # perhaps of values that no draw has
            if fault.spoils and not self.sizes.adversarial:
                raise  # these sizes need not be
            self.oracle.survive(fault)
            taken = [(n, tensors) for n, tensors in changed if self.oracle.tried(tree, [tensors]) is not None]
            self.skipped += [f"{self.sizes.shown_label}: {name}" for name, _ in changed if name not in dict(taken)]
            cases = arrange(tree, [*usual, *taken])
        return Prepared(self.oracle, cases, tree, tuple(self.skipped))

    def _changed(self, tree: Any, draws: Sequence[values.Tensors], *, first: bool) -> list[tuple[str, values.Tensors]]:
        """Inputs that no draw of the recipe's holds, of the structure that draws have."""
        tensors, kept, left_out = draws[0], structure.of(draws), self.reference.left_out
        named: list[tuple[str, values.Tensors]] = []
        if self.sizes.adversarial:
            twin = values.twin(tensors, [True] * len(tensors), self.generator)
            named.append((_EXCHANGED, structure.restored(self._with_drawn(draws, _two_exchanged), kept)))
            named.append((_MIXED, structure.restored(self._with_drawn(draws, _some_exchanged), kept)))
            named.append((_TOUCHED, structure.restored(twin, kept)))
        self.skipped += [f"{self.sizes.shown_label}: {label}" for label in left_out if label in _VALUES]
        if values.UNUSUAL in left_out:
            return named
        sets = self._affordable(values.survived(self._sets(first=first), left_out), tensors)
        named += [(s.name, structure.changed(tensors, s, kept, self.generator)) for s in sets]
        if not self.sizes.adversarial:
            return named
        extremes = values.extremes(draws)
        if extremes is not None:
            named.append(("rows of the largest and of the smallest integers", structure.restored(extremes, kept)))
        if first and values.NOT_FINITE not in left_out:
            named += single_inputs.of(tensors, kept, self.generator)
        for name, change in (("integers most of which are alike", constants.skewed), ("padded masks", padding.padded)):
            made = change(self.oracle, tree, draws)
            if made is not None:
                named.append((name, made))
        others = constants.of(self.oracle, tree, draws)
        return [*named, (_OTHERS, others.changed(tensors))] if others else named

    def _with_drawn(self, draws: Sequence[values.Tensors], change: Change) -> values.Tensors:
        """A draw with a change to each tensor that is drawn."""
        return tuple(
            change(one, self.generator) if one.numel() and not values.same_bits(one, other) else one
            for one, other in zip(*draws[:2], strict=True)
        )

    def _shuffled(self, tree: Any, named: Sequence[tuple[str, values.Tensors]]) -> list[Case]:
        rounding = [_ROUNDING.get(name, values.Rounding()) for name, _ in named]
        found = self.oracle.expect(tree, [tensors for _, tensors in named], rounding)
        self._tells(named, found)
        beside = not self.sizes.adversarial
        pairs = enumerate(zip(named, found, strict=True))
        cases = [
            Case(n, t, _roomy(e, beside), i, nan_spreads=beside and not all(map(values.is_finite, t)))
            for i, ((n, t), e) in pairs
            if _tell(n, e)
        ]
        # The first case comes three times in all, at secret places: equal inputs must give equal answers.
        cases += [Case("repeated", cases[0].tensors, cases[0].expected, cases[0].same)] * 2 if cases else []
        return values.shuffled(cases, self.generator)

    def _in_order(self, tree: Any, named: Sequence[tuple[str, values.Tensors]]) -> list[Case]:
        """The cases of a module whose answers depend on the calls before: what spoils its state for good comes last."""
        mixed = values.shuffled(named, self.generator)
        ordered = sorted(mixed, key=lambda pair: not all(map(values.is_finite, pair[1])))
        rounding = [_ROUNDING.get(name, values.Rounding()) for name, _ in ordered]
        found = self.oracle.expect(tree, [tensors for _, tensors in ordered], rounding)
        self._tells(ordered, found)
        pairs = enumerate(zip(ordered, found, strict=True))
        return [Case(n, t, e, i, counts=_tell(n, e)) for i, ((n, t), e) in pairs]

    def _tells(self, named: Sequence[tuple[str, values.Tensors]], found: Sequence[Expected]) -> None:
        """Raises Rejection where the recipe's own inputs of a workload tell nothing, since any answer would pass then,
        or where floating inputs decide by their values the shapes of outputs: a kernel is told these by the shapes of
        its inputs."""
        if not self.sizes.adversarial:
            return
        own = [e for (n, _), e in zip(named, found, strict=True) if n in OWN]
        others = [e.shapes for (n, _), e in zip(named, found, strict=True) if n in OWN or n in _ROUNDING]
        differ = [shapes for shapes in others if shapes != own[0].shapes]
        if differ:
            shapes = "" if self.sizes.hidden else f" ({own[0].shapes} and {differ[0]})"
            self._unusable(f"{SHAPES_DEPEND}{shapes}: {FIXED_SHAPES}")
        if not any(e.complete for e in own):
            self._unusable(TELLS_NOTHING)

    def _unusable(self, why: str) -> NoReturn:
        raise Rejection(Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"on {self.sizes.label} {why}")

    def _sets(self, *, first: bool) -> Sequence[values.ValueSet]:
        if self.sizes.layout:
            return ()
        if not self.sizes.adversarial:
            return values.AT_OTHER_SIZES
        return values.ADVERSARIAL if first else self._some_sets()

    def _some_sets(self) -> list[values.ValueSet]:
        count = _LATER_SETS if not self.sizes.hidden else _HIDDEN_SETS
        order = torch.randperm(len(values.ADVERSARIAL), generator=self.generator).tolist()
        picked = [values.ADVERSARIAL[index] for index in sorted(order[:count])]
        return [*picked, *(one for one in values.AT_EDGES if one not in picked)]

    def _affordable(self, sets: Sequence[values.ValueSet], tensors: values.Tensors) -> list[values.ValueSet]:
        """As many of the value sets, picked at random, as the device has memory for; smaller sizes get all of them."""
        spare = self.reference.backend.free_bytes()
        if spare is None:
            return list(sets)
        case_bytes = _CASE_BYTES * sum(t.numel() * t.element_size() for t in tensors)
        room = max(1, spare // 2 // max(1, case_bytes) - _SEEDS - 1)
        if room < len(sets):
            label = self.sizes.shown_label
            self.skipped.append(f"{label}: {len(sets) - room} value sets, for want of device memory")
        picked = torch.randperm(len(sets), generator=self.generator).tolist()[:room]
        return [sets[i] for i in sorted(picked)]


def _two_exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """What a memo by a tensor's ends, its sum or its largest takes for equal."""
    real = tensor.is_floating_point() or tensor.is_complex()
    return (values.with_two_exchanged if real else constants.exchanged)(tensor, generator)


def _some_exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same, of many elements: where outputs hang on the few largest inputs, as softmax's do, two that change places
    are hardly ever seen."""
    real = tensor.is_floating_point() or tensor.is_complex()
    return values.with_some_exchanged(tensor, generator) if real else tensor


def _roomy(expected: Expected, beside: bool) -> Expected:
    """At sizes beside the Workloads', which are many, what is wrong is far off; and a few elements are a poor sample of
    what an honest implementation is off by."""
    few = all(target.oracle.numel() < _FEW_ELEMENTS for target in expected.targets)
    return expected.loosened(_FEW_SLACK if few else _BESIDE_SLACK) if beside else expected


def _tell(name: str, expected: Expected) -> bool:
    """Whether outputs on inputs of that name can be compared with what is expected."""
    return expected.informative and (name not in _IN_BOUNDS or all(t.integral or t.finite for t in expected.targets))


@dataclass(slots=True)
class _Kept:
    prepared: Prepared
    parameters: dict[str, torch.Tensor]
    bytes_held: int
    shown_to: set[str] = field(default_factory=set)


class KeptCases:
    """The cases of a Problem's first sizes, for up to sixteen Candidates one after the other: working out what is right
    is half of what it takes to refuse a wrong one.

    No Candidate sees the same ones twice, since what its module leaves behind goes to its later children. From one
    Candidate to another nothing goes but what verdicts tell, an element at a time. Held-out sizes are never kept, nor
    what is timed, nor the cases of a module with buffers.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    def take(
        self, problem: Problem, candidate: Candidate, sizes: Sizes, reference: Subject, generator: torch.Generator
    ) -> Prepared | None:
        """Cases that this Candidate has not seen, in a new order, with the reference constructed as it was for them;
        None where there are none. Raises Rejection where that fails."""
        kept = self._kept.get((problem.hash, sizes.label))
        if kept is None or candidate.hash in kept.shown_to:
            return None
        kept.shown_to.add(candidate.hash)
        if len(kept.shown_to) >= _MOST_CANDIDATES:
            del self._kept[problem.hash, sizes.label]
        try:
            kept.prepared.oracle.construct_again(reference, kept.parameters, generator)
        except (ChildFault, LayoutError) as fault:
            self._kept.pop((problem.hash, sizes.label), None)
            raise Rejection(
                Verdict.INVALID_REFERENCE, Stage.CORRECTNESS, f"the reference fails on {sizes.label}: {fault}"
            ) from fault
        return replace(kept.prepared, cases=values.shuffled(kept.prepared.cases, generator))

    def put(self, problem: Problem, candidate: Candidate, sizes: Sizes, prepared: Prepared | None) -> None:
        """Keep what this Candidate is checked with for others, if there is room for it."""
        if prepared is None or sizes.hidden or prepared.oracle.buffers:
            return
        held = prepared.bytes_held()
        if held > self._most_bytes:
            return
        kept = _Kept(prepared, dict(prepared.oracle.parameters), held, {candidate.hash})
        self._kept[problem.hash, sizes.label] = kept
        self._kept.move_to_end((problem.hash, sizes.label))
        while sum(one.bytes_held for one in self._kept.values()) > self._most_bytes:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything; a device that was lost has taken it along."""
        self._kept.clear()
