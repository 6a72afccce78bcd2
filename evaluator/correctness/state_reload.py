"""Load state into a Candidate's modules after calls, which makes derived data stale.

Loaded are new parameters, one changed element of one tensor, parameters far from their initial values, and the state of
two modules in turn. Weights folded at construction or at the first call, and cached outputs, are wrong from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.expected import Expected
from evaluator.correctness import long_run_state
from evaluator.correctness.cases import Case
from evaluator.errors import ChildFault
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle import constants
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import PARAMETER_SCALINGS, ParameterScaling, match_names
from evaluator.subject import RunReply, Subject
from evaluator.timing.contender import ComparatorFailed

# Loads that change one element: so many, or two of each tensor, up to the most. A kernel that looks at every other
# element passes once in 64. With few tensors, the last and the first element of each are among the changes.
_CHANGES, _MOST_CHANGES = 8, 12
_PLACES = (None, -1, None, 0)
_EXCHANGES = 2
_FREE_MEMORY_FACTOR = 8  # times the bytes of a module's parameters must be free on the device for two more of it

Compare = Callable[[Oracle, Any, Sequence[Case], RunReply, Sizes], object]


@contextmanager
def reference_must_work(sizes: Sizes) -> Iterator[None]:
    """Raise ComparatorFailed for a fault of the reference, which worked a moment ago: the Candidate is not to blame."""
    try:
        yield
    except (ChildFault, LayoutError) as fault:
        raise ComparatorFailed("the reference", f"it failed on {sizes.shown_label}: {fault}") from fault


@dataclass(frozen=True, slots=True)
class StateReloads:
    """Check loads of state on one set of sizes.

    `matched` maps the oracle's names of parameters and buffers to the Candidate's. `compare` raises Rejection where a
    call does not return what its Case expects.
    """

    candidate: Subject
    oracle: Oracle
    matched: Mapping[str, str]
    sizes: Sizes
    train: bool
    call_limit_s: float
    compare: Compare

    def run(self, tree: Any, tensors: values.Tensors, *, first: bool) -> None:
        """Load new parameters and call the module with inputs that it has seen before.

        On shown Workloads also load changes that a sample of the parameters does not show, and on the `first` sizes
        check two modules in turn, or states that many calls leave. Then call with other numbers.
        """
        oracle = self.oracle
        with reference_must_work(self.sizes):
            oracle.randomise_state()
            (like,) = oracle.expect(tree, [tensors])
        self._call_after_load("new parameters", tree, tensors, like)
        if self.sizes.adversarial and not self.sizes.hidden:
            self._change_elements(tree, tensors, like)
            if not oracle.stateful(tree, tensors):
                for how in PARAMETER_SCALINGS:
                    self._load_stretched(how, tree, tensors)
                if first:
                    self._check_two_modules(tree, tensors)
            elif first and long_run_state.LABEL not in oracle.subject.left_out:
                self._load_long_run_states(tree, tensors)
        if self.sizes.adversarial:
            self._call_with_smaller_floats(tree, tensors)

    def _change_elements(self, tree: Any, tensors: values.Tensors, like: Expected) -> None:
        """Load states with one changed element each, or two exchanged ones."""
        for name, larger, where in self._element_changes():
            with reference_must_work(self.sizes):
                self.oracle.perturb_element(name, larger=larger, where=where)
            self._load_one(f"one element of {name} changed", name, tree, tensors, like)
        for name in values.shuffled(self.oracle.perturbable_names, self.oracle.generator)[:_EXCHANGES]:
            with reference_must_work(self.sizes):
                self.oracle.swap_elements(name)
            self._load_one(f"two elements of {name} exchanged", name, tree, tensors, like)

    def _load_one(self, what: str, name: str, tree: Any, tensors: values.Tensors, like: Expected) -> None:
        oracle = self.oracle
        with reference_must_work(self.sizes):
            (expected,) = oracle.targets(tree, [tensors], like)
            # Buffers that outputs depend on go back to the reference's initial ones.
            names = {name, *(oracle.buffers if oracle.stateful(tree, tensors) else ())}
        matched = {name: theirs for name, theirs in self.matched.items() if name in names}
        self._call_after_load(what, tree, tensors, expected, matched, borrowed_limits=True)

    def _element_changes(self) -> list[tuple[str, bool, int | None]]:
        """Return changes in secret order: tensor, slight (a 64th larger) or a new value, position (None: random).

        Every tensor has one if there are not too many. Few tensors have several, the last and the first among them.
        """
        names = values.shuffled(self.oracle.perturbable_names, self.oracle.generator)
        turns = max(_CHANGES, min(2 * len(names), _MOST_CHANGES)) if names else 0
        places = (divmod(turn, len(names)) for turn in range(turns))
        made = [(names[place], (lap + place) % 2 == 1, _PLACES[lap % len(_PLACES)]) for lap, place in places]
        return values.shuffled(made, self.oracle.generator)

    def _load_stretched(self, how: ParameterScaling, tree: Any, tensors: values.Tensors) -> None:
        """Load parameters far from their initial values: a negative gain, a slope above one, a tiny variance.

        Where signs change, large inputs are called with, too: a maximum before a negative gain is none after it.
        """
        calls = [tensors]
        if how.negative and values.UNUSUAL not in self.oracle.subject.left_out:
            calls.append(values.apply(values.LARGE, tensors, self.oracle.generator))
        with ExitStack() as inside:
            with reference_must_work(self.sizes):
                found = inside.enter_context(self.oracle.with_scaled_state(how, tree, calls))
            for given, expected in found:
                self._call_after_load(how.name, tree, given, expected)

    def _call_with_smaller_floats(self, tree: Any, tensors: values.Tensors) -> None:
        with reference_must_work(self.sizes):
            other = constants.with_smaller_floats(self.oracle, tree, tensors)
            found = self.oracle.expect(other, [tensors]) if other is not None else []
        for expected in found:
            self._call_after_load("a number changed", other, tensors, expected)

    def _check_two_modules(self, tree: Any, tensors: values.Tensors) -> None:
        """Call two new modules with different parameters in turn, as a network does: data that one of them caches in a
        shared place is wrong for the other."""
        spare = self.oracle.subject.backend.spare_bytes()
        held = sum(value.numel() * value.element_size() for value in self.oracle.parameters.values())
        if not self.oracle.perturbable_names or (spare is not None and spare < _FREE_MEMORY_FACTOR * held):
            return
        oracle, candidate = self.oracle, self.candidate
        known = []
        for other in (False, True):
            with reference_must_work(self.sizes):
                oracle.randomise_state()
                (expected,) = oracle.expect(tree, [tensors])
            known.append((oracle.parameters, oracle.buffers, expected))
            names = candidate.construct("ModelNew", oracle.init, train=self.train, seed=7, beside=other)
            candidate.load_state(oracle.state_for(match_names(oracle.names, names)))
        for parameters, buffers, expected in (*reversed(known), known[1]):
            with reference_must_work(self.sizes):
                oracle.load(parameters, buffers)
            self._compare_call(Case("two modules side by side", tensors, expected, 0), tree)
            candidate.swap()

    def _load_long_run_states(self, tree: Any, tensors: values.Tensors) -> None:
        oracle, usual = self.oracle, (self.oracle.parameters, self.oracle.buffers)
        with reference_must_work(self.sizes):
            found = long_run_state.states_after_many_calls(oracle)
        for calls, state in found:
            with reference_must_work(self.sizes):
                oracle.load(oracle.parameters, {**oracle.buffers, **state})
                (expected,) = oracle.expect(tree, [tensors])
            self._call_after_load(f"a state after {calls} calls", tree, tensors, expected)
        oracle.load(*usual)

    def _call_after_load(
        self,
        name: str,
        tree: Any,
        tensors: values.Tensors,
        expected: Expected,
        matched: Mapping[str, str] | None = None,
        *,
        borrowed_limits: bool = False,
    ) -> None:
        """Compare a call after loading the `matched` parameters and buffers, or all of them by default."""
        self.candidate.load_state(self.oracle.state_for(self.matched if matched is None else matched))
        self._compare_call(Case(name, tensors, expected, 0, borrowed_limits=borrowed_limits), tree)

    def _compare_call(self, case: Case, tree: Any) -> None:
        reply = self.candidate.run(tree, [case.tensors], slot="second", timeout_s=self.call_limit_s)
        try:
            if case.expected.informative:
                self.compare(self.oracle, tree, [case], reply, self.sizes)
        finally:
            self.candidate.finish(reply)
        self.candidate.drop("second")
