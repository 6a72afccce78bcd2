"""Outputs of every case: values, layouts, equal outputs for equal inputs, unmodified inputs, separate memory."""

from __future__ import annotations

from evaluator.correctness.context import CheckContext, FirstCalls


class Outputs:
    name = "outputs"

    def run(self, context: CheckContext) -> None:
        candidate, cases = context.candidate, context.cases
        calls = [case.tensors for case in cases]
        reply = candidate.run(context.tree, calls, slot="first", timeout_s=context.limit_s(len(cases)))
        try:
            outputs = context.comparison.compare(context.oracle, context.tree, cases, reply, context.sizes)
        finally:
            candidate.end_run(reply)
        context.first_calls = FirstCalls(reply, outputs)
