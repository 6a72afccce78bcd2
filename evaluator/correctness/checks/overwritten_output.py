"""Two equal calls on a new draw, the output of the first overwritten between them: it belongs to the caller."""

from __future__ import annotations

from evaluator.correctness.cases import Case
from evaluator.correctness.context import CheckContext
from evaluator.correctness.repeated_calls import compare_last_calls, output_views


class OverwrittenOutput:
    """For the first sizes only."""

    name = "overwritten output"

    def run(self, context: CheckContext) -> None:
        case = context.repeatable_without_state
        if case is None or not context.first_sizes or any(output_views(case)):
            return
        with context.reference_must_work():
            made = context.oracle.inputs()
            (expected,) = context.oracle.targets(context.tree, [made.tensors], case.expected)
        again = [Case("a draw", made.tensors, expected, 0, borrowed_limits=True)]
        compare_last_calls(context, again, "after the output of an equal call was overwritten", spoil=True)
