"""State loaded after calls: weights folded at construction or at the first call, and cached outputs, are stale then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluator.comparison.expected import Expected
from evaluator.correctness.context import CheckContext
from evaluator.correctness.foreseen import Step
from evaluator.inputs import perturbations, values
from evaluator.oracle.oracle import Oracle

# Loads that change one element: so many, or two of each tensor, up to the most. A kernel that looks at every other
# element passes once in 64. With few tensors, the last and the first element of each are among the changes.
_CHANGES, _MOST_CHANGES = 8, 12
_PLACES = (None, -1, None, 0)
_EXCHANGES = 2


class StateReload:
    """Load new parameters into the same module and call it with inputs that it has seen before.

    For shown Workloads also load changes that a sample of the parameters does not show.
    """

    name = "state reload"

    def run(self, context: CheckContext) -> None:
        if not (context.oracle.parameters or context.oracle.buffers):
            return
        for step in context.steps(self.name, lambda: _steps(context)):
            context.take_step(step)


def _steps(context: CheckContext) -> Iterator[Step]:
    oracle, tensors = context.oracle, context.plain_inputs
    with context.reference_must_work():
        oracle.randomise_state()
        (like,) = oracle.expect(context.tree, [tensors])
    yield Step(name="new parameters", state=oracle.state, tensors=tensors, expected=like)
    if context.is_shown_workload:
        yield from _changed_elements(context, tensors, like)


def _changed_elements(context: CheckContext, tensors: values.Tensors, like: Expected) -> Iterator[Step]:
    """Yield loads of states with one changed element each, or two exchanged ones."""
    oracle = context.oracle
    for name, larger, where in _element_changes(oracle):
        with context.reference_must_work():
            oracle.perturb_element(name, larger=larger, where=where)
        yield _load_some(context, f"one element of {name} changed", [name], tensors, like)
    for name in values.shuffled(oracle.perturbable_names, oracle.generator)[:_EXCHANGES]:
        with context.reference_must_work():
            oracle.swap_elements(name)
        yield _load_some(context, f"two elements of {name} exchanged", [name], tensors, like)
    yield from _slight_changes(context, tensors, like)


def _slight_changes(context: CheckContext, tensors: values.Tensors, like: Expected) -> Iterator[Step]:
    """Yield loads of states with every element changed slightly: a cache of parameters that compares them up to a
    tolerance is stale."""
    for what, share in perturbations.SLIGHT_CHANGES.items():
        with context.reference_must_work():
            changed = context.oracle.change_slightly(share)
        if changed:
            where = f"{what}, of every parameter"
            yield _load_some(context, where, context.oracle.perturbable_names, tensors, like)


def _load_some(context: CheckContext, what: str, some: Sequence[str], tensors: values.Tensors, like: Expected) -> Step:
    """Return a call after a load of some tensors of the state."""
    oracle = context.oracle
    with context.reference_must_work():
        (expected,) = oracle.targets(context.tree, [tensors], like)
        # Buffers that outputs depend on go back to the reference's initial ones.
        names = {*some, *(oracle.buffers if oracle.stateful(context.tree, tensors) else ())}
    return Step(
        name=what, state=oracle.state, tensors=tensors, expected=expected, loaded=frozenset(names), borrowed_limits=True
    )


def _element_changes(oracle: Oracle) -> list[tuple[str, bool, int | None]]:
    """Return changes in secret order: tensor, slight (a 64th larger) or a new value, position (None: random).

    Every tensor has one if there are not too many. Few tensors have several, the last and the first among them.
    """
    names = values.shuffled(oracle.perturbable_names, oracle.generator)
    turns = max(_CHANGES, min(2 * len(names), _MOST_CHANGES)) if names else 0
    places = (divmod(turn, len(names)) for turn in range(turns))
    made = [(names[place], (lap + place) % 2 == 1, _PLACES[lap % len(_PLACES)]) for lap, place in places]
    return values.shuffled(made, oracle.generator)
