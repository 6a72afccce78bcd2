"""Parameters far from their initial values: a negative gain, a slope above one, a tiny variance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from evaluator.correctness.context import CheckContext
from evaluator.correctness.foreseen import Step
from evaluator.inputs import values
from evaluator.oracle.state import PARAMETER_SCALINGS, ParameterScaling


class ScaledParameters:
    """For modules without state, on shown Workloads."""

    name = "scaled parameters"

    def run(self, context: CheckContext) -> None:
        if context.is_shown_workload and not context.oracle.stateful(context.tree, context.plain_inputs):
            for scaling in PARAMETER_SCALINGS:
                for step in context.steps(f"{self.name}: {scaling.name}", partial(_steps, context, scaling)):
                    context.take_step(step)


def _steps(context: CheckContext, scaling: ParameterScaling) -> Iterator[Step]:
    """Load scaled parameters and call.

    Where signs change, large inputs are called with, too: a maximum before a negative gain is none after it.
    """
    oracle, calls = context.oracle, [context.plain_inputs]
    if scaling.negative and values.UNUSUAL not in oracle.subject.left_out:
        calls.append(values.apply(values.LARGE, context.plain_inputs, oracle.generator))
    with ExitStack() as inside:
        with context.reference_must_work():
            found = inside.enter_context(oracle.with_scaled_state(scaling, context.tree, calls))
        for given, expected in found:
            yield Step(name=scaling.name, state=oracle.state, tensors=given, expected=expected)
