"""Parameters and buffers that forward leaves unchanged: saving them and falling back to the reference depend on it."""

from __future__ import annotations

import torch

from evaluator.correctness import buffers
from evaluator.correctness.compare_outputs import STAGE
from evaluator.correctness.context import CheckContext
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.types import Verdict


class UnchangedParameters:
    """Those that the reference itself changes may change. For Workloads only, shown and held-out ones."""

    name = "unchanged parameters"

    def run(self, context: CheckContext) -> None:
        if not context.sizes.adversarial:
            return
        if context.oracle.parameters:
            _check_parameters(context)
        if context.oracle.buffers:
            _check_buffers(context)


def _check_parameters(context: CheckContext) -> None:
    loaded = context.oracle.parameters
    changed = buffers.changed_parameters(context.candidate, loaded, context.matched, context.made_dtypes)
    if not changed:
        return
    with context.reference_must_work():
        now = context.oracle.current_parameters()
    for name in changed:
        if name in now and values.same_bits(now[name], loaded[name]):
            raise _rejection(context, "parameter", name)


def _check_buffers(context: CheckContext) -> None:
    """Compare a call's buffers with those that were loaded before it. `ChangedBuffers` compares those that the
    reference changes."""
    oracle, candidate, tensors = context.oracle, context.candidate, context.plain_inputs
    matched = {name: context.matched[name] for name in oracle.buffers if name in context.matched}
    candidate.load_state(oracle.state_for(context.matched))
    before = buffers.held_buffers(candidate, matched, context.made_dtypes)
    candidate.end_run(candidate.run(context.tree, [tensors], slot="state", timeout_s=context.limit_s(1)))
    candidate.drop("state")
    after = buffers.held_buffers(candidate, matched, context.made_dtypes)
    changed = [n for n in matched if n not in before or n not in after or not _same(before[n], after[n])]
    candidate.load_state(oracle.state_for(context.matched))
    if not changed:
        return
    with context.reference_must_work():
        moved = oracle.changed_buffers(context.tree, [tensors])
    for name in changed:
        if name not in moved:
            raise _rejection(context, "buffer", name)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and values.same_bits(one, other)


def _rejection(context: CheckContext, kind: str, name: str) -> Rejection:
    reason = f"forward changes the {kind} {name}, on {context.sizes.label}: leave {kind}s as they are loaded"
    return Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, **{"check": f"{kind}s", kind: name})
