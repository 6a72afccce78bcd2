"""Inputs of timed rounds, and rounds that wait to be verified."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evaluator.child.protocol import chain
from evaluator.comparison.expected import Expected
from evaluator.devices.base import Round
from evaluator.inputs import values
from evaluator.subject import Result
from evaluator.timing.contender import Contender
from evaluator.types import Stage

STAGE = Stage.TIMING


@dataclass(slots=True)
class Answer:
    """The oracle's answer to a call: its result in float64, or what to expect of outputs.

    The latter is made of the former where comparing many calls at once leaves a doubt.
    """

    result: Result | None = None
    expected: Expected | None = None


@dataclass(slots=True)
class RoundInputs:
    """The inputs of one round's calls. `answers` holds the oracle's by call; it grows while calls that all contenders
    share are verified."""

    calls: list[values.Tensors]
    value_sets: list[values.ValueSet | None]  # the adversarial values of each call
    kinds: frozenset[str]  # names of adversarial values
    link: chain.Link | None
    answers: dict[int, Answer] = field(default_factory=dict)

    def shared(self, call: int) -> bool:
        """Return whether all contenders get a call's inputs alike: not where the chain derives them from a contender's
        outputs."""
        return call == 0 or self.link is None


@dataclass(frozen=True, slots=True)
class ContenderRound:
    """One contender's round on these inputs. Only calls in `sampled` are compared, or all that `compared_calls` counts
    (None)."""

    contender: Contender
    inputs: RoundInputs
    done: Round
    sampled: frozenset[int] | None = None

    @property
    def compared(self) -> list[int]:
        """The calls whose outputs are compared, in order."""
        calls = range(compared_calls(self.contender, len(self.inputs.calls)))
        return [call for call in calls if self.sampled is None or call in self.sampled]

    def copied(self) -> ContenderRound:
        """Return it with copies of the outputs that are needed, which the child's next round would overwrite."""
        kept = self._kept
        outputs = [
            [values.clone(tensor) for tensor in tensors] if call in kept else []
            for call, tensors in enumerate(self.done.outputs)
        ]
        return replace(self, done=replace(self.done, outputs=outputs))

    @property
    def bytes_held(self) -> int:
        """The bytes of a copy."""
        kept = self._kept
        outputs = [tensors for call, tensors in enumerate(self.done.outputs) if call in kept]
        return sum(values.bytes_of(call) for call in (*outputs, *self.done.inputs))

    @property
    def _kept(self) -> set[int]:
        """The calls whose outputs are needed: a compared call's inputs follow from the call before."""
        compared = self.compared
        before = () if self.inputs.link is None else (call - 1 for call in compared)
        return {*compared, *before}


def compared_calls(contender: Contender, calls: int) -> int:
    """Return how many calls of a round are compared: all of a Candidate's; one of a Baseline's or of a second
    process's."""
    return calls if contender.compared_in_full else min(1, calls)
