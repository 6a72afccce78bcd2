"""Different inputs in the same memory: allocators reuse addresses, so an address does not identify its content."""

from __future__ import annotations

from evaluator.correctness.cases import RECIPE_CASES, TWIN_CASES
from evaluator.correctness.context import CheckContext
from evaluator.correctness.repeated_calls import compare_last_calls, output_views


class ReusedMemory:
    """Call with draws in the same memory in turn, some nearly equal, the first one again at the end.

    For shown Workloads only.
    """

    name = "reused memory"

    def run(self, context: CheckContext) -> None:
        if context.repeatable_without_state is None or not context.is_shown_workload:
            return
        known = {case.name: case for case in context.cases}
        order = (RECIPE_CASES[0], *TWIN_CASES, *RECIPE_CASES[1:], RECIPE_CASES[0])
        cases = [known[name] for name in order if name in known]
        if len(cases) < 2 or all(output_views(cases[0])):
            return
        compare_last_calls(context, cases, "when the call before had other inputs at the same address", in_place=True)
