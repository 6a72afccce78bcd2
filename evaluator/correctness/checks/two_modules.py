"""Two modules in turn, as in a network: data that one of them caches in a shared place is wrong for the other."""

from __future__ import annotations

from evaluator.correctness.cases import Case
from evaluator.correctness.context import CheckContext

_FREE_MEMORY_FACTOR = 8  # times the bytes of a module's parameters must be free on the device for two more of it


class TwoModules:
    """Construct two new modules with different parameters. For modules without state, on the first shown sizes."""

    name = "two modules"

    def run(self, context: CheckContext) -> None:
        oracle, candidate, tensors = context.oracle, context.candidate, context.plain_inputs
        if not context.is_shown_workload or not context.first_sizes or oracle.stateful(context.tree, tensors):
            return
        spare = oracle.subject.backend.free_bytes()
        held = sum(value.numel() * value.element_size() for value in oracle.parameters.values())
        if not oracle.perturbable_names or (spare is not None and spare < _FREE_MEMORY_FACTOR * held):
            return
        known = []
        for other in (False, True):
            with context.reference_must_work():
                oracle.randomise_state()
                (expected,) = oracle.expect(context.tree, [tensors])
            known.append((oracle.parameters, oracle.buffers, expected))
            context.construct(keep_previous=other)
        for parameters, buffers, expected in (*reversed(known), known[1]):
            with context.reference_must_work():
                oracle.load(parameters, buffers)
            context.compare_call(Case("two modules side by side", tensors, expected, 0))
            candidate.swap_modules()
