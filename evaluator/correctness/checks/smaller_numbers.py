"""Other numbers among the arguments of a call, which a kernel may have compiled in."""

from __future__ import annotations

from evaluator.correctness.context import CheckContext
from evaluator.oracle import constants


class SmallerNumbers:
    """For Workloads only, shown and held-out ones."""

    name = "smaller numbers"

    def run(self, context: CheckContext) -> None:
        if not context.sizes.adversarial:
            return
        tensors = context.plain_inputs
        with context.reference_must_work():
            trees = constants.with_smaller_floats(context.oracle, context.tree, tensors)
            found = [(tree, expected) for tree in trees for expected in context.oracle.expect(tree, [tensors])]
        for tree, expected in found:
            context.call_after_load("a number changed", tensors, expected, tree=tree)
