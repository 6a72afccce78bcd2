"""One new module called with several sizes in turn: data cached in one call is wrong for the next.

Then new parameters are loaded, and two of the sizes come again: what was prepared for each size is stale.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from evaluator.comparison.expected import Expected
from evaluator.correctness.cases import Case
from evaluator.correctness.compare_outputs import STAGE
from evaluator.correctness.context import CheckContext
from evaluator.correctness.foreseen import Step
from evaluator.errors import ChildError, ChildFault
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes, sizes_for_one_module
from evaluator.oracle.oracle import Oracle
from evaluator.rejections import rejection

_AFTER_LOAD = ", which was loaded after its first calls"
_SIZES_AFTER_LOAD = 2  # the first renews what a kernel keeps by version, the second finds it stale


class SizeSequence:
    """For one shown Workload and one held-out one: never the first of several for what may be too slow to go on, since
    each size loads another kernel, or compiles it."""

    name = "size sequence"

    def run(self, context: CheckContext) -> None:
        if not context.sizes.adversarial or context.sizes.hidden in context.size_sequences or context.brief:
            return
        calls = [s for s in context.steps(self.name, lambda: _steps(context)) if _is_in_contract(context, s)]
        if len({step.name for step in calls}) < 2:
            return
        context.size_sequences.add(context.sizes.hidden)
        changes_buffers = context.oracle.changes_buffers(context.tree, context.plain_inputs)
        context.oracle.assume(calls[0].state)
        matched, before = context.construct(), None
        for step in calls:
            loads = before is not None and step.state is not before.state
            if loads or (before is not None and changes_buffers):  # as each of the reference's calls begins
                context.oracle.assume(step.state)
                context.candidate.load_state(context.oracle.state_for(matched))
            after = "" if before is None else f", after a call with {before.name} in the same module"
            _call(context, step, f"a draw{after}{'' if step.state is calls[0].state else _AFTER_LOAD}")
            _call_with_nan(context, step.tree, step.tensors)
            before = step


def _steps(context: CheckContext) -> list[Step]:
    """Return calls with the sizes that the reference accepts in one module."""
    oracle, reference = context.oracle, context.reference
    with context.reference_must_work():
        workloads = context.problem.workloads_for(reference.backend.kind)
        sequence = sizes_for_one_module(
            context.problem,
            workloads,
            context.sizes,
            reference.left_out,
            oracle.builds_same_module,
            reference.dimensions or {},
        )
        found = {one.label: oracle.expect_at(one) for one in sequence}
    steps = _steps_on_present_state(oracle, sequence, found)
    if not oracle.parameters:
        return steps
    again = list({step.name: step.sizes for step in steps if step.sizes is not None}.values())[:_SIZES_AFTER_LOAD]
    with context.reference_must_work():
        oracle.randomise_state()
        found = {one.label: oracle.expect_at(one) for one in again}
    return [*steps, *_steps_on_present_state(oracle, again, found)]


def _steps_on_present_state(
    oracle: Oracle, sequence: Sequence[Sizes], found: Mapping[str, tuple[Any, values.Tensors, Expected] | None]
) -> list[Step]:
    """Return calls with these sizes, as far as they were found; all of them share one state."""
    state = oracle.state
    known = [(one, *made) for one in sequence if (made := found[one.label]) is not None]
    return [
        Step(name=one.label, state=state, tensors=tensors, expected=expected, tree=tree, sizes=one)
        for one, tree, tensors, expected in known
    ]


def _is_in_contract(context: CheckContext, step: Step) -> bool:
    assert step.sizes is not None
    return context.shape_contract.learn_or_check(step.sizes, step.expected)


def _call(context: CheckContext, step: Step, name: str) -> None:
    assert step.sizes is not None
    try:
        reply = context.candidate.run(step.tree, [step.tensors], slot="turn", timeout_s=context.limit_s(1))
    except ChildFault as fault:  # of these sizes, and not of those that are checked
        raise rejection(fault, STAGE, f"checking {step.sizes.label}, {name}") from fault
    try:
        case = Case(name, step.tensors, step.expected, 0)
        context.comparison.compare(context.oracle, step.tree, [case], reply, step.sizes)
    finally:
        context.candidate.end_run(reply)
    context.candidate.drop("turn")


def _call_with_nan(context: CheckContext, tree: Any, tensors: values.Tensors) -> None:
    """Call with NaN everywhere and ignore the outputs, so that leftovers in a workspace are NaN, too."""
    if values.NOT_FINITE in context.reference.left_out:
        return
    candidate = context.candidate
    spoiled = tuple(torch.full_like(t, math.nan) if t.is_floating_point() else t for t in tensors)
    with contextlib.suppress(ChildError):  # such values may be refused
        candidate.end_run(candidate.run(tree, [spoiled], slot="turn", timeout_s=context.first_call_s))
        candidate.drop("turn")
