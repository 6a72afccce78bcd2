"""Buffers that forward changes are outputs: after equal calls they hold what the reference's hold."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator.correctness import buffers
from evaluator.correctness.compare_outputs import STAGE
from evaluator.correctness.context import CheckContext
from evaluator.inputs import values


class ChangedBuffers:
    name = "changed buffers"

    def run(self, context: CheckContext) -> None:
        oracle, candidate = context.oracle, context.candidate
        if not oracle.buffers:
            return
        with context.reference_must_work():
            calls = [oracle.inputs().tensors for _ in range(buffers.CALLS)]
            found = [(calls, oracle.changed_buffers(context.tree, calls), context.sizes.label)]
        if context.first_sizes:
            found += _calls_with_nan(context, calls)
        for made, wanted, where in found:
            if wanted:
                limit_s = context.limit_s(len(made))
                candidate.end_run(candidate.run(context.tree, made, slot="state", timeout_s=limit_s))
                candidate.drop("state")
                buffers.compare(candidate, wanted, context.matched, made, STAGE, where)
                candidate.load_state(oracle.state_for(context.matched))


def _calls_with_nan(
    context: CheckContext, calls: Sequence[values.Tensors]
) -> list[tuple[list[values.Tensors], dict[str, torch.Tensor], str]]:
    """Return a few calls, the last with a NaN, and the buffers after them: some count non-finite values.

    Returns [] if the reference does not accept a NaN.
    """
    oracle, tree = context.oracle, context.tree
    made = [*calls[:-1], values.apply(values.WITH_NAN, calls[-1], context.generator)]
    if values.NOT_FINITE in context.reference.left_out or oracle.try_calls(tree, made[-1:]) is None:
        return []
    with context.reference_must_work():
        return [(made, oracle.changed_buffers(tree, made), f"{context.sizes.label}, a NaN in the last one")]
