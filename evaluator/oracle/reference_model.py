"""The reference's Model in its own caged child, built for one set of sizes, with its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from evaluator.child.protocol.layout import TensorSpec, UnjudgedTensorError, tensor_places
from evaluator.comparison.claims import unjudged_reason
from evaluator.errors import ChildError
from evaluator.inputs import perturbations, values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle.state import positive_like, random_parameters, random_statistics
from evaluator.subject import Arguments, NamedTensor, Subject
from evaluator.types import Problem

CALL_S = 30.0


class ReferenceModel:
    """One reference child with one Model. Raises ChildFault where it fails."""

    def __init__(
        self, problem: Problem, subject: Subject, sizes: Mapping[str, Any], generator: torch.Generator
    ) -> None:
        self.problem, self.sizes, self.generator = problem, dict(sizes), generator
        self._subject, self._behind = subject, False
        self.init = subject.recipe("get_init_inputs", sizes, self._seed())
        self.names = subject.construct("Model", self.init, train=problem.train, seed=self._seed())
        self._initial_parameters = self._fetched(self.names.parameters)
        self._initial_buffers = self._fetched(self.names.buffers)
        self.buffers = random_statistics(
            self._initial_buffers, subject.nontrivial_buffers, subject.positive_buffers or set(), generator
        )
        self._seeded_floats, self._other_integers = self._seed_dependent_state()
        self._load_other_integers = False
        self.parameters: dict[str, torch.Tensor] = {}
        self._changes_buffers: bool | None = None if self.buffers else False  # None: not known yet
        self.randomise_state()
        if subject.positive_buffers is None:
            self._keep_out_of_nan()

    @property
    def subject(self) -> Subject:
        """The reference's child, with the state that was loaded or assumed last."""
        self.catch_up()
        return self._subject

    def catch_up(self) -> None:
        """Give the child the state that was assumed."""
        if self._behind:
            self.load(self.parameters, self.buffers)

    def construct_again(
        self, subject: Subject, parameters: Mapping[str, torch.Tensor], generator: torch.Generator
    ) -> None:
        """Build the same Model with these parameters in a child that has dropped it. Later draws use
        another generator."""
        self._subject, self._behind, self.generator = subject, False, generator
        self.names = subject.construct("Model", self.init, train=self.problem.train, seed=self._seed())
        self.load(dict(parameters), self.buffers)

    def _fetched(self, named: Sequence[NamedTensor]) -> dict[str, torch.Tensor]:
        """Return parameters or buffers by name. Raise UnjudgedTensorError for one that cannot be judged."""
        for one in named:
            if why := unjudged_reason(one.claim):
                raise UnjudgedTensorError(f"the Model's {one.name} {why}")
        found = self.subject.backend.fetch(self.subject.child, [one.claim for one in named])
        return dict(zip([one.name for one in named], found, strict=True))

    def _seed_dependent_state(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Return the buffers and integer parameters that change with the seed: a codebook is learnt, a table of
        positions is not.

        Floating ones are returned as they are, integers (packed weights, an order) as another seed makes them.
        Statistics that already have random values are skipped.
        """
        unknown = {n: made for n, made in self._initial_buffers.items() if self.buffers[n] is made}
        unknown |= {
            n: made
            for n, made in self._initial_parameters.items()
            if not (made.is_floating_point() or made.is_complex())
        }
        if not any(made.numel() > 1 for made in unknown.values()):
            return {}, {}
        self.names = self.subject.construct("Model", self.init, train=self.problem.train, seed=self._seed())
        now = self._fetched([*self.names.parameters, *self.names.buffers])
        drawn = {n: made for n, made in unknown.items() if n in now and not values.same_bits(made, now[n])}
        floating = {n: made for n, made in drawn.items() if made.is_floating_point()}
        return floating, {n: now[n] for n in drawn if n not in floating}

    def _keep_out_of_nan(self) -> None:
        """Draw positive statistics where others make NaN (a second moment below zero), or keep the initial ones where
        those do, too. A reference's later models do the same."""
        subject, drawn = self._subject, self.buffers
        subject.positive_buffers = set()
        names = {
            n
            for n, made in self._initial_buffers.items()
            if drawn[n] is not made and not bool(values.workable(made).any())
        }
        inputs = self.inputs() if names else None
        if inputs is None or not self._makes_nan(inputs):
            return
        positive = {n: positive_like(self._initial_buffers[n]) for n in names}
        tries = (
            (random_parameters(positive, self.generator), subject.positive_buffers),
            ({n: self._initial_buffers[n] for n in names}, subject.nontrivial_buffers),
        )
        for values_tried, noted in tries:
            self.load(self.parameters, drawn | values_tried)
            if not self._makes_nan(inputs):
                noted |= names
                return
        self.load(self.parameters, drawn)

    def _makes_nan(self, inputs: Arguments) -> bool:
        try:
            ((_, outputs),) = self._subject.results(inputs.tree, [inputs.tensors], timeout_s=CALL_S)
        except ChildError:
            return False
        self._subject.load_state(self.buffers)
        return any(bool(values.workable(output).isnan().any()) for output in outputs)

    def randomise_state(self) -> None:
        """Load new random parameters and seed-dependent buffers; keep the rest. Integers alternate, all together,
        between those of one seed and of another."""
        drawn = random_parameters(self._initial_parameters, self.generator)
        made = self._initial_parameters | self._initial_buffers
        picked = (
            self._other_integers if self._load_other_integers else {name: made[name] for name in self._other_integers}
        )
        self._load_other_integers = not self._load_other_integers
        buffers = self.buffers | random_parameters(self._seeded_floats, self.generator)
        self.load(
            {name: picked.get(name, value) for name, value in drawn.items()},
            {name: picked.get(name, value) for name, value in buffers.items()},
        )

    def load(self, parameters: dict[str, torch.Tensor], buffers: dict[str, torch.Tensor]) -> None:
        """Load these parameters and buffers, and no others."""
        self.parameters, self.buffers, self._behind = parameters, buffers, False
        self._subject.load_state({**parameters, **buffers})

    @property
    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        return self.parameters, self.buffers

    def assume(self, state: tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]) -> None:
        """Have this state; the child gets it when it is asked next, or by `catch_up`."""
        (self.parameters, self.buffers), self._behind = state, True

    @property
    def perturbable_names(self) -> list[str]:
        """The parameters, and the statistics that training would have changed: each may be reloaded alone."""
        every = dict(self.parameters)
        if not self._changes_buffers:
            every |= {name: now for name, now in self.buffers.items() if now is not self._initial_buffers[name]}
        able = {n: v for n, v in every.items() if v.is_floating_point() or v.is_complex()}
        return [name for name, value in able.items() if value.numel()]

    def perturb_element(self, name: str, *, larger: bool, where: int | None = None) -> None:
        """Change one element of a tensor of `perturbable_names` (a random one, or that at `where`): to a new value, or
        to one that is a 64th larger."""
        before = (self.parameters | self.buffers)[name]
        if larger:
            wide = before if before.is_complex() else before.double()
            other = (wide * (1 + 1 / 64)).to(before.dtype)
        else:
            (other,) = random_parameters(
                {name: (self._initial_parameters | self._initial_buffers)[name]}, self.generator
            ).values()
        self._load_some({name: perturbations.with_element_of(before, other, self.generator, where)})

    def swap_elements(self, name: str) -> None:
        """Swap two elements of a tensor of `perturbable_names`. No sum over it changes."""
        before = (self.parameters | self.buffers)[name]
        self._load_some({name: perturbations.with_two_swapped(before, self.generator)})

    def change_slightly(self, most: float) -> bool:
        """Make all elements of the `perturbable_names` smaller by a share of `most` at most, as a step of training
        moves them. Return False where their types have too few digits."""
        before = self.parameters | self.buffers
        made = {n: perturbations.all_slightly_smaller(before[n], self.generator, most) for n in self.perturbable_names}
        self._load_some(made)
        return any(value is not before[name] for name, value in made.items())

    def _load_some(self, changed: Mapping[str, torch.Tensor]) -> None:
        """Load the present state with other values of some tensors."""
        parameters, buffers = (
            {name: changed.get(name, value) for name, value in some.items()} for some in (self.parameters, self.buffers)
        )
        self.load(parameters, buffers)

    def current_buffers(self) -> dict[str, torch.Tensor]:
        """Return the reference's buffers after its last call, by name."""
        return self._fetched(self.subject.describe_state().buffers)

    def current_parameters(self) -> dict[str, torch.Tensor]:
        return self._fetched(self.subject.describe_state().parameters)

    def inputs(self) -> Arguments:
        """Draw inputs from the recipe."""
        return self.subject.recipe("get_inputs", self.sizes, self._seed())

    def drawn_constructor(self) -> Arguments:
        """Return the constructor's arguments under another seed."""
        return self.subject.recipe("get_init_inputs", self.sizes, self._seed())

    def drawn_layouts(self, count: int, *, limit_s: float) -> list[list[TensorSpec]]:
        """Return the layouts of the inputs that the recipe draws, so many times or as often as `limit_s` allows."""
        return self.subject.drawn_layouts(self.sizes, [self._seed() for _ in range(count)], limit_s=limit_s)

    def draws(
        self, count: int, positions: Sequence[int], meanwhile: Iterable[object] = ()
    ) -> tuple[list[list[torch.Tensor]], float]:
        """Draw inputs so many times, and return the tensors at some positions of each, and the seconds that this took.
        The steps of `meanwhile` are taken beside it."""
        return self.subject.draws(self.sizes, [self._seed() for _ in range(count)], positions, meanwhile=meanwhile)

    def builds_same_module(self, sizes: Sizes) -> bool:
        """Return whether other sizes make the same module."""
        try:
            init = self.subject.recipe("get_init_inputs", sizes.sizes, self._seed())
        except ChildError:
            return False
        return not (init.tensors or self.init.tensors) and init.tree == self.init.tree

    def changed_buffers(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> dict[str, torch.Tensor]:
        """Return the buffers that these calls change, with their new values. The reference then has its first ones
        again."""
        self.subject.load_state(self.buffers)
        self.run_calls(tree, calls)
        after = self.current_buffers()
        self.subject.load_state(self.buffers)
        kept = ((name, after[name], before) for name, before in self.buffers.items() if name in after)
        return {name: now for name, now, before in kept if not values.same_bits(now, before)}

    def run_calls(self, tree: Any, calls: Sequence[Sequence[torch.Tensor]]) -> None:
        """Make these calls on the current buffers, for their effect on them."""
        self.subject.results(tree, calls, timeout_s=CALL_S, mutates=self.mutated(tree))

    def changes_buffers(self, tree: Any, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether a call changes buffers."""
        if self._changes_buffers is None:
            self._changes_buffers = bool(self.changed_buffers(tree, [tensors]))
        return self._changes_buffers

    def changed_inputs(self, tree: Any, tensors: Sequence[torch.Tensor]) -> list[int]:
        """Return which tensors of the inputs a call changes although the Problem does not declare it."""
        asked = [place for place in range(len(tensors)) if place not in self.mutated(tree)]
        ((_, found),) = self.subject.results(tree, [tensors], timeout_s=CALL_S, mutates=asked)
        after = found[len(found) - len(asked) :]
        return [place for place, now in zip(asked, after, strict=True) if not values.same_bits(now, tensors[place])]

    def mutated(self, tree: Any) -> tuple[int, ...]:
        """Return which tensors of the inputs the Problem declares as changed in place: the inputs at these positions,
        or all that lie in them. Raise UnjudgedTensorError for a position without a tensor."""
        if not self.problem.mutates:
            return ()
        arguments = next(iter(tree.values()))
        found = [tensor_places(arguments[p]) if p < len(arguments) else [] for p in self.problem.mutates]
        if not all(found):
            raise UnjudgedTensorError(f"MUTATES = {list(self.problem.mutates)} names an input that holds no tensor")
        return tuple(place for places in found for place in places)

    def _seed(self) -> int:
        return int(torch.randint(1 << 31, (1,), generator=self.generator))

    def state_for(self, names: Mapping[str, str]) -> dict[str, torch.Tensor]:
        """Return parameters and buffers under a Candidate's names for them."""
        everything = {**self.parameters, **self.buffers}
        return {names[name]: value for name, value in everything.items() if name in names}
