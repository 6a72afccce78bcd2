"""What calls of timed rounds are made of, and what came of them: inputs that nobody has seen, and rounds that are kept
to be verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from evaluator.child.protocol import chain
from evaluator.comparison.expected import Expected
from evaluator.devices.base import Round
from evaluator.inputs import values
from evaluator.timing.contender import Contender
from evaluator.types import Stage

STAGE = Stage.TIMING


@dataclass(slots=True)
class RoundInputs:
    """The inputs of one round's calls; `expected`, by call, grows as calls are verified that everybody makes alike."""

    calls: list[values.Tensors]
    value_sets: list[values.ValueSet | None]  # which hold adversarial values
    kinds: frozenset[str]  # of adversarial values
    link: chain.Link | None
    expected: dict[int, Expected] = field(default_factory=dict)

    def shared(self, call: int) -> bool:
        """Whether a call's inputs are the same for everybody: not where the chain makes them of own outputs."""
        return call == 0 or self.link is None


@dataclass(frozen=True, slots=True)
class ContenderRound:
    """A round that somebody made of these inputs."""

    contender: Contender
    inputs: RoundInputs
    done: Round

    def copied(self) -> ContenderRound:
        """The same, of whose outputs the child's next round overwrites none."""
        count = compared_calls(self.contender, len(self.inputs.calls))
        outputs = [[values.clone(tensor) for tensor in call] for call in self.done.outputs[:count]]
        return replace(self, done=replace(self.done, outputs=outputs))

    @property
    def bytes_held(self) -> int:
        return sum(bytes_of(call) for call in (*self.done.outputs, *self.done.inputs))


def compared_calls(contender: Contender, calls: int) -> int:
    """How many calls of a round are compared: all of a Candidate's, one of a Baseline's or of a second process's."""
    return calls if contender.compared_in_full else min(1, calls)


def bytes_of(tensors: Sequence[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)
