"""Check that a module that changes buffers still changes them in timed rounds.

A kernel could change them in its first calls alone and skip that work later. Where outputs depend on buffers, the
outputs of timed rounds tell as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from evaluator.child.protocol import chain
from evaluator.child.protocol.layout import LayoutError
from evaluator.correctness.buffers import compare
from evaluator.devices.base import RoundPlan
from evaluator.errors import ChildFault, Rejection
from evaluator.timing.contender import Contender
from evaluator.timing.contender_round import STAGE, ContenderRound
from evaluator.timing.integrity.session import TimedSession
from evaluator.timing.rounds import Rounds


class Buffers:
    """Compares the buffers after one more round like the timed ones, which itself is not timed."""

    name = "buffers"

    def run(self, session: TimedSession) -> None:
        if not session.rounds.moves_buffers:
            return
        once = replace(session.plans[0], replays=1, instances=1)
        for contender in (c for c in session.contenders if c.compared_in_full):
            _compare_after(session.rounds, contender, once)


def _compare_after(rounds: Rounds, contender: Contender, once: RoundPlan) -> None:
    rounds.run(contender, rounds.repeated_inputs(once.calls), once)  # prepares it for such rounds
    inputs = rounds.usual_inputs(once.calls)
    done = rounds.run(contender, inputs, once, read=once.calls)
    rounds.verifier.verify(ContenderRound(contender, inputs, done))
    try:
        calls = chain.derive(inputs.calls, done.outputs, inputs.link)
        wanted = rounds.oracle.changed_buffers(rounds.tree, calls)
        names = _names(rounds.oracle.buffers, contender.buffers)
        compare(contender.subject, wanted, names, calls, STAGE, rounds.verifier.label)
    except (ChildFault, LayoutError) as fault:
        raise rounds.verifier.attribute(contender, fault) from fault
    except Rejection as found:
        if rounds.workload.held_out:
            raise Rejection(
                found.verdict, STAGE, "a buffer is wrong after a held-out workload", check="buffer"
            ) from found
        raise


def _names(reference: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Map the reference's names to those of a child that was given the same tensors."""
    known = {id(value): name for name, value in own.items()}
    return {name: known[id(value)] for name, value in reference.items() if id(value) in known}
