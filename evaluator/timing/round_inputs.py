"""Generate new inputs for the timed calls of one Workload, distributed as its recipe makes them.

Floating tensors are mixed from a few draws of the recipe, which costs a few copies and keeps the properties that all
draws share (`inputs.structure`). The meaning of integers and masks (bounds, labels, lengths) is unknown here, so each
call gets those of a draw of its own, as far as drawing takes no longer than a moment a round. Where the reference does
not accept mixtures (matrices that must have an inverse, say), everything is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import torch

from evaluator.child.protocol import chain
from evaluator.inputs import mixtures, perturbations, structure, values
from evaluator.oracle import constants
from evaluator.oracle.oracle import Oracle

Thing = TypeVar("Thing")
_POOL = 3
_TWINS = 0.1  # share of calls whose inputs differ in one element from those of the call before
DRAWING_S = 0.04  # for the draws of a round; further calls use draws again
_SCALES = (0.5, 1.0)


class InputMaker:
    """Makes inputs of calls that an Oracle's reference accepts. Raises ChildFault where its process ends."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle, self._generator = oracle, oracle.generator
        start = time.perf_counter()
        made = [oracle.inputs() for _ in range(_POOL)]
        self._draw_s = (time.perf_counter() - start) / _POOL
        self.tree, self._first = made[0].tree, [arguments.tensors for arguments in made]
        self.bases = mixtures.mixing_bases(self._first, self._generator)
        first = self.bases[0]
        varies = [not values.same_bits(a, b) for a, b in zip(first, self.bases[1], strict=True)]
        self._mixes = [vary and tensor.is_floating_point() for vary, tensor in zip(varies, first, strict=True)]
        self._drawn = [index for index, vary in enumerate(varies) if vary and not self._mixes[index]]
        self._structures = structure.find_structures(self._first)
        self._others = constants.find_constants(oracle, self.tree, self.bases)
        self._coins = mixtures.random_masks(first, self._mixes, self._generator)
        self._between = mixtures.are_continuous(first)
        self._scales = False  # scale draws, where nothing can be mixed
        self.integers_repeat = False  # calls of a round shared integers, because drawing takes long
        self._left_out = oracle.subject.left_out
        takes_unusual = values.UNUSUAL not in self._left_out
        self.mixed = takes_unusual and self._accepts([self._mixture()])
        first_drawn = [self._first[0][index] for index in self._drawn]
        exchanges = takes_unusual and bool(self._drawn)
        self._exchanges = exchanges and self._accepts([self._with_draw(self._exchanged(first_drawn), self._undrawn())])
        if not self.mixed:
            self._drawn = [index for index, vary in enumerate(varies) if vary]
            self._scales = takes_unusual and self._accepts([self._scaled(self._first[0], _SCALES[0])])

    def calls(
        self, count: int, kinds: Mapping[int, values.ValueSet], drawing_s: float = DRAWING_S
    ) -> tuple[list[values.Tensors], list[values.ValueSet | None]]:
        """Return the inputs of `count` calls, and the value set that changed each (None: unchanged). `kinds` gives
        value sets by call. Some calls are twins: they differ from the call before in one element. Drawing takes at most
        `drawing_s`."""
        generator, picks = self._generator, torch.rand(count, generator=self._generator).tolist()
        twins = {n for n, pick in enumerate(picks) if n and pick < _TWINS and n not in kinds and self.mixed}
        mixed: dict[int, values.Tensors] = {}
        draws = self._draws(count, drawing_s, self._mixing([n for n in range(count) if n not in twins], mixed))
        calls: list[values.Tensors] = []
        chosen: list[values.ValueSet | None] = []
        for index, pick in enumerate(picks):
            if index in twins:
                twin = perturbations.near_duplicate(calls[-1], self._mixes, generator, slightly=pick < _TWINS / 2)
                calls.append(self._others.slightly_changed(structure.restored(twin, self._structures), generator))
                chosen.append(chosen[-1])
                continue
            made = self._with_draw(self._drawn_for(index, draws), mixed.pop(index))
            calls.append(self.changed(made, kinds[index]) if index in kinds else made)
            chosen.append(kinds.get(index))
        return calls, chosen

    def changed(self, tensors: values.Tensors, kind: values.ValueSet) -> values.Tensors:
        """Return a call's inputs with the values of a set, as far as their structure allows it."""
        return structure.apply_values(tensors, kind, self._structures, self._generator)

    def kinds(self, wanted: Sequence[values.ValueSet]) -> list[values.ValueSet]:
        """Return those value sets that the reference accepts."""
        if not self.mixed:
            return []
        made = self._mixture()
        wanted = values.usable_sets(wanted, self._left_out, made)
        changed = [self.changed(made, kind) for kind in wanted]
        if self._accepts(changed):
            return list(wanted)
        return [kind for kind, tensors in zip(wanted, changed, strict=True) if self._accepts([tensors])]

    def link(self, inputs: values.Tensors, output: int, output_elements: int) -> chain.Link | None:
        """Return new chain coefficients, or None where nothing can be chained. They cover all random floating inputs
        (the largest ones where there are very many), or else the largest integer input."""
        free = [index for index in range(len(inputs)) if self.mixed and self._linkable(index, inputs[index])]
        free.sort(key=lambda i: -inputs[i].numel() * inputs[i].element_size())
        able = _apart([i for i in free if self._mixes[i]], inputs)[: chain.MOST_INPUTS]
        able = able or [i for i in free if inputs[i].dtype is not torch.bool][:1]
        if not able:
            return None
        zeros = {index: self._structures[index].zeros for index in able}
        return chain.make_link(inputs, sorted(able), output, output_elements, self._generator, zeros)

    def shuffled(self, things: Sequence[Thing]) -> list[Thing]:
        """Return things in a secret order."""
        return values.shuffled(things, self._generator)

    def _linkable(self, index: int, tensor: torch.Tensor) -> bool:
        has = self._structures[index]
        free = not has.symmetric and not has.in_order
        many = tensor.numel() - (int(has.zeros.sum()) if has.zeros is not None else 0) > 1
        return (self._mixes[index] or index in self._drawn) and free and many and chain.dense(tensor)

    def _mixture(self) -> values.Tensors:
        mixed = mixtures.mix(self.bases, self._coins, self._between, self._mixes, self._generator)
        return structure.restored(mixed, self._structures)

    def _mixing(self, numbers: Sequence[int], mixed: dict[int, values.Tensors]) -> Iterator[None]:
        """Make a mixture for each of some calls, in steps: the draws are made in another process meanwhile."""
        for number in numbers:
            mixed[number] = self._undrawn()
            yield

    def _undrawn(self) -> values.Tensors:
        """Return a call's inputs but for its draw."""
        return self._mixture() if self.mixed else self.bases[0]

    def _with_draw(self, drawn: Sequence[torch.Tensor], mixture: values.Tensors) -> values.Tensors:
        """Return a mixture with the parts that every draw has of its own; a whole draw where nothing is mixed."""
        whole = list(mixture)
        for index, tensor in zip(self._drawn, drawn, strict=False):
            whole[index] = tensor
        if not self._scales:
            return tuple(whole)
        low, high = _SCALES
        return self._scaled(tuple(whole), low + (high - low) * float(torch.rand((), generator=self._generator)))

    def _scaled(self, tensors: values.Tensors, factor: float) -> values.Tensors:
        pairs = zip(tensors, self._mixes, strict=True)
        return tuple(values.copy_laid_out(t, values.workable(t) * factor) if mixes else t for t, mixes in pairs)

    def _drawn_for(self, index: int, draws: Sequence[list[torch.Tensor]]) -> list[torch.Tensor]:
        """Return a call's own draw. Where there are fewer draws than calls, one is used again with two of its integers
        exchanged, so that answers cannot be looked up by their inputs."""
        if index < len(draws) or not draws:
            return draws[index] if draws else []
        again = draws[index % len(draws)]
        return self._exchanged(again) if self._exchanges else again

    def _exchanged(self, drawn: list[torch.Tensor]) -> list[torch.Tensor]:
        return [constants.with_two_swapped(tensor, self._generator) for tensor in drawn]

    def drawn_within(self, drawing_s: float) -> int:
        """Return how many calls can be drawn in that time."""
        return int(min(drawing_s / max(self._draw_s, 1e-6), 1e9))

    def _draws(self, count: int, drawing_s: float, meanwhile: Iterator[None]) -> list[list[torch.Tensor]]:
        """Return draws for `count` calls, or for as many as time allows. Where it allows none, return the first draws.

        Take all steps of `meanwhile`, during the drawing if there is any.
        """
        many = min(count, self.drawn_within(drawing_s)) if self._drawn else 0
        self.integers_repeat |= bool(self._drawn) and many < count
        if not many:
            for _ in meanwhile:
                pass
        if not self._drawn:
            return []
        if not many:
            return [[tensors[index] for index in self._drawn] for tensors in self.shuffled(self._first)]
        found, seconds = self._oracle.draws(many, self._drawn, meanwhile)
        self._draw_s = seconds / many
        return found

    def _accepts(self, calls: Sequence[values.Tensors]) -> bool:
        return self._oracle.try_calls(self.tree, calls) is not None


def _apart(indices: Sequence[int], inputs: values.Tensors) -> list[int]:
    """Return the inputs that share no memory with one before them."""
    ends: list[tuple[int, int]] = []
    found = []
    for index in indices:
        start = inputs[index].data_ptr()
        end = start + inputs[index].numel() * inputs[index].element_size()
        if all(end <= other or start >= its_end for other, its_end in ends):
            ends.append((start, end))
            found.append(index)
    return found
