"""The steps of later checks on one set of sizes: made for one Candidate, and kept with the cases for others.

They follow the rules of `cases.CaseCache`: no Candidate takes the same steps twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from evaluator.comparison.expected import Expected
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes

State = tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]
"""The reference's parameters and buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call, after a load of the reference's `state` then: of all of it, or of the tensors named in `loaded`.

    `tree` and `sizes` are set where they differ from those of the check.
    """

    name: str
    state: State
    tensors: values.Tensors
    expected: Expected
    loaded: frozenset[str] | None = None
    borrowed_limits: bool = False
    tree: Any = None
    sizes: Sizes | None = None

    def held(self) -> Iterator[torch.Tensor]:
        """Yield the tensors that the step keeps in memory."""
        yield from self.tensors
        for some in self.state:
            yield from some.values()
        for target in self.expected.targets:
            yield from target.tensors()


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of one check, and the reference's state after them."""

    steps: tuple[Step, ...]
    after: State


class ReferenceState(Protocol):
    """The reference's state as the judge knows it (`oracle.reference_model`)."""

    @property
    def state(self) -> State: ...

    def assume(self, state: State) -> None: ...


@dataclass(slots=True)
class Foreseen:
    """The steps by check. `reserve` takes a number of bytes, or gives them back if it is negative, and returns whether
    there is room; nothing is kept by default."""

    reserve: Callable[[int], bool] = lambda _: False
    known: dict[str, Steps] = field(default_factory=dict)

    def take(self, check: str, reference: ReferenceState, make: Callable[[], Iterable[Step]]) -> Iterator[Step]:
        """Yield the known steps of a check, or make new ones and keep them once all were taken.

        The reference is assumed to have the state of each known step; it gets it when it is asked next.
        """
        if check in self.known:
            for step in self.known[check].steps:
                reference.assume(step.state)
                yield step
            reference.assume(self.known[check].after)
            return
        recorded = _Recorded(self.reserve)
        try:
            for step in make():
                recorded.add(step)
                yield step
            recorded.finish(self.known, check, reference.state)
        finally:
            recorded.close()


class _Recorded:
    """Steps that are being made: dropped at once where there is no room for all of them."""

    def __init__(self, reserve: Callable[[int], bool]) -> None:
        self._reserve = reserve
        self._steps: list[Step] | None = []
        self._held: dict[int, int] = {}

    def add(self, step: Step) -> None:
        if self._steps is None:
            return
        more = storages(step.held())
        new = sum(size for place, size in more.items() if place not in self._held)
        if not self._reserve(new):
            self.close()
            return
        self._held |= more
        self._steps.append(step)

    def finish(self, known: dict[str, Steps], check: str, after: State) -> None:
        if self._steps is not None:
            known[check] = Steps(tuple(self._steps), after)
            self._held, self._steps = {}, None

    def close(self) -> None:
        """Give back the room of steps that are not kept."""
        self._reserve(-sum(self._held.values()))
        self._held, self._steps = {}, None


def storages(tensors: Iterable[torch.Tensor]) -> Mapping[int, int]:
    """Return the bytes of the memory blocks that tensors lie in, by address."""
    stored = (tensor.untyped_storage() for tensor in tensors)
    return {storage.data_ptr(): storage.nbytes() for storage in stored}
