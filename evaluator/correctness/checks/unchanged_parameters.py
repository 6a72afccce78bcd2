"""Parameters that forward leaves unchanged: saving them and falling back to the reference depend on it."""

from __future__ import annotations

from evaluator.correctness import buffers
from evaluator.correctness.compare_outputs import STAGE
from evaluator.correctness.context import CheckContext
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.types import Verdict


class UnchangedParameters:
    """Parameters that the reference itself changes may change. For the first sizes only."""

    name = "unchanged parameters"

    def run(self, context: CheckContext) -> None:
        loaded = context.oracle.parameters
        if not loaded or not context.first_sizes:
            return
        changed = buffers.changed_parameters(context.candidate, loaded, context.matched)
        if not changed:
            return
        with context.reference_must_work():
            now = context.oracle.current_parameters()
        for name in changed:
            if name in now and values.same_bits(now[name], loaded[name]):
                where = f"on {context.sizes.label}: leave parameters as they are loaded"
                reason = f"forward changes the parameter {name}, {where}"
                raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="parameters", parameter=name)
