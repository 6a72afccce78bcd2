"""Steps of later checks are made once, and taken by other Candidates with the reference's state of then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from evaluator.comparison.expected import Expected
from evaluator.correctness.cases import CaseCache
from evaluator.correctness.foreseen import Foreseen, State, Step
from evaluator.oracle.oracle import Oracle
from evaluator.stages.judge import Judge
from evaluator.types import Verdict
from tests.evaluator.rooms import candidate, eager_only, forward, problem

NOTHING = Expected(None, (), (), ())
FOLDS = candidate(
    "class ModelNew(Base):\n"
    "    def forward(self, x):\n"
    "        if not hasattr(self, 'kept'):\n"
    "            self.kept = self.weight.detach().clone()\n"
    "        return right(x, self.kept)\n"
)


class Reference:
    """Stands in for a reference whose parameter counts the steps that were made."""

    def __init__(self) -> None:
        self.state: State = {"weight": torch.zeros(4)}, {}
        self.assumed: list[float] = []

    def assume(self, state: State) -> None:
        self.state = state
        self.assumed.append(float(state[0]["weight"][0]))

    def steps(self, count: int) -> Iterator[Step]:
        for number in range(count):
            self.state = {"weight": torch.full((4,), float(number))}, {}
            yield Step(name=f"step {number}", state=self.state, tensors=(torch.ones(8),), expected=NOTHING)
        self.state = {"weight": torch.full((4,), 9.0)}, {}


class Room:
    """Has room for so many bytes."""

    def __init__(self, size: int) -> None:
        self.left = size

    def reserve(self, more: int) -> bool:
        if more > self.left:
            return False
        self.left -= more
        return True


def test_steps_are_made_once_and_come_with_their_states() -> None:
    room, reference = Room(1 << 20), Reference()
    foreseen = Foreseen(room.reserve)
    made = list(foreseen.take("loads", reference, lambda: reference.steps(3)))
    assert [step.name for step in made] == ["step 0", "step 1", "step 2"]
    assert not reference.assumed
    assert (1 << 20) - room.left == 3 * (4 + 8) * 4
    again = foreseen.take("loads", reference, lambda: pytest.fail("made again"))
    seen = [(step.name, float(reference.state[0]["weight"][0])) for step in again]
    assert seen == [("step 0", 0.0), ("step 1", 1.0), ("step 2", 2.0)]
    assert reference.assumed == [0.0, 1.0, 2.0, 9.0], "the state after all steps comes last"


@pytest.mark.parametrize("size", [0, 100])
def test_steps_without_room_are_made_for_each(size: int) -> None:
    room, reference = Room(size), Reference()
    foreseen = Foreseen(room.reserve)
    for _ in range(2):
        assert len(list(foreseen.take("loads", reference, lambda: reference.steps(3)))) == 3
    assert not foreseen.known
    assert room.left == size


def test_steps_that_a_candidate_does_not_survive_are_not_kept() -> None:
    room, reference = Room(1 << 20), Reference()
    foreseen = Foreseen(room.reserve)
    steps = foreseen.take("loads", reference, lambda: reference.steps(3))
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert not foreseen.known
    assert room.left == 1 << 20


@pytest.mark.usefixtures("workloads_alone")
def test_another_candidate_is_held_to_the_steps_of_the_first(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """This judges for real: what is kept must still find a fault, and must match the state that is loaded."""
    task, made, usual = problem(), [], Oracle.randomise_state
    monkeypatch.setattr(Oracle, "randomise_state", lambda oracle: (made.append(oracle), usual(oracle)))
    monkeypatch.setattr(judge.check_stage, "cases", CaseCache(256 << 20))
    baseline = eager_only(judge, task)
    first = judge.judge(task, forward("return right(x, self.weight)"), baseline)
    assert first.verdict is Verdict.PASSED, first.reason
    second = judge.judge(task, forward("return right(x, self.weight) * 1.0"), baseline)
    assert second.verdict is Verdict.PASSED, second.reason
    made.clear()
    stale = judge.judge(task, FOLDS, baseline)
    assert (stale.verdict, stale.evidence["inputs"]) == (Verdict.INCORRECT_VALUES, "new parameters")
    assert not made, "the reference's states were known"
