"""Parameters far from their initial values: a negative gain, a slope above one, a tiny variance."""

from __future__ import annotations

from contextlib import ExitStack

from evaluator.correctness.context import CheckContext
from evaluator.inputs import values
from evaluator.oracle.state import PARAMETER_SCALINGS, ParameterScaling


class ScaledParameters:
    """For modules without state, on shown Workloads."""

    name = "scaled parameters"

    def run(self, context: CheckContext) -> None:
        if context.is_shown_workload and not context.oracle.stateful(context.tree, context.plain_inputs):
            for scaling in PARAMETER_SCALINGS:
                _load(context, scaling)


def _load(context: CheckContext, scaling: ParameterScaling) -> None:
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
            context.call_after_load(scaling.name, given, expected)
