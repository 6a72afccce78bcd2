"""Outputs that change after they were returned, until all other checks are done."""

from __future__ import annotations

from evaluator.comparison.claims import tensor_claims
from evaluator.correctness.compare_outputs import STAGE
from evaluator.correctness.context import CheckContext
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.types import Verdict


class LaterChanges:
    name = "later changes"

    def run(self, context: CheckContext) -> None:
        assert context.first_calls is not None
        candidate = context.candidate
        candidate.child.freeze()
        try:
            now = candidate.fetch_calls([tensor_claims(item) for item in context.first_calls.reply.replies])
            for before, after in zip(context.first_calls.outputs, now, strict=True):
                if any(not values.same_bits(a, b) for a, b in zip(after, before, strict=False)):
                    reason = "an output was changed after it was returned"
                    raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="changed_later")
        finally:
            candidate.child.thaw()
        candidate.drop("first")
