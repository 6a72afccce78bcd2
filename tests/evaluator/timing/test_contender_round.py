"""Rounds that wait to be verified keep what comparing them needs."""

from types import SimpleNamespace

import pytest
import torch

from evaluator.child.protocol.chain import Link
from evaluator.devices.base import Round, RoundPlan
from evaluator.timing.contender_round import ContenderRound, RoundInputs

LINK = Link((0,), 0, (1,), torch.zeros(11, 1, dtype=torch.int64))
CALLS = 6


def round_of(*, link=LINK, full=True, sampled=None):
    outputs = [[torch.full((3,), float(call))] for call in range(CALLS)]
    inputs = RoundInputs([(torch.zeros(3),)] * CALLS, [None] * CALLS, frozenset(), link)
    done = Round(plan=RoundPlan(calls=CALLS), wall_us=1.0, replies=[None] * CALLS, outputs=outputs)
    contender = SimpleNamespace(compared_in_full=full)
    return ContenderRound(contender, inputs, done, sampled)


@pytest.mark.parametrize(
    ("how", "compared", "kept"),
    [
        ({}, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        ({"full": False}, [0], [0]),
        ({"sampled": frozenset((5, 2))}, [2, 5], [1, 2, 4, 5]),
        ({"sampled": frozenset((5, 2)), "link": None}, [2, 5], [2, 5]),
        ({"sampled": frozenset((0,))}, [0], [0]),
    ],
)
def test_the_outputs_that_are_needed_are_copied(how, compared, kept):
    one = round_of(**how)
    copied = one.copied()
    for call in one.done.outputs:
        call[0].fill_(9.0)  # as the child's next round does
    assert one.compared == compared
    assert [call for call, tensors in enumerate(copied.done.outputs) if tensors] == kept
    assert all(copied.done.outputs[call][0].tolist() == [call] * 3 for call in kept)
    assert one.bytes_held == 12 * len(kept)
