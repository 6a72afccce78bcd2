"""Loads into modules of a Candidate's that have been called: what they have prepared is stale now.

New parameters, one element of one tensor, parameters far from where they began, two modules side by side. Weights
folded at construction or at the first call, and answers that were kept, are wrong from then on.
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
from evaluator.errors import ChildFault, ComparatorFailed
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle import constants
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import STRETCHES, Stretch, match_names
from evaluator.subject import RunReply, Subject

# Loads that change one element, so many or two of each tensor, but no more than the most: who looks at every other one
# passes once in 64. Where there are few tensors, one of each one's is the last, and one the first.
_TOUCHES, _MOST_TOUCHES = 8, 12
_PLACES = (None, -1, None, 0)
_EXCHANGES = 2
_SPARE = 8  # times the bytes of a module's parameters must be free on the device for two more of it

Compare = Callable[[Oracle, Any, Sequence[Case], RunReply, Sizes], object]


@contextmanager
def reference_at_work(sizes: Sizes) -> Iterator[None]:
    """What fails here was right a moment ago: this machine failed it, and the Candidate has nothing to do with it."""
    try:
        yield
    except (ChildFault, LayoutError) as fault:
        raise ComparatorFailed("the reference", f"it failed on {sizes.shown_label}: {fault}") from fault


@dataclass(frozen=True, slots=True)
class Loads:
    """Everything about loads for one set of sizes. `matched` are the Candidate's names of the oracle's parameters and
    buffers; `compare` raises Rejection where what a call returned is not what its Case wants."""

    candidate: Subject
    oracle: Oracle
    matched: Mapping[str, str]
    sizes: Sizes
    train: bool
    call_limit_s: float
    compare: Compare

    def run(self, tree: Any, tensors: values.Tensors, *, first: bool) -> None:
        """New parameters into the same module, and inputs that it has seen before. On what is shown also loads of which
        a glance at the parameters tells nothing, and on the `first` sizes two modules in turn, or states that many
        calls have left. Then other numbers in the call."""
        oracle = self.oracle
        with reference_at_work(self.sizes):
            oracle.reload()
            (like,) = oracle.expect(tree, [tensors])
        self._renewed("new parameters", tree, tensors, like)
        if self.sizes.adversarial and not self.sizes.hidden:
            self._touched(tree, tensors, like)
            if not oracle.stateful(tree, tensors):
                for how in STRETCHES:
                    self._stretched(how, tree, tensors)
                if first:
                    self._side_by_side(tree, tensors)
            elif first and long_run_state.LABEL not in oracle.subject.left_out:
                self._long_lived(tree, tensors)
        if self.sizes.adversarial:
            self._other_numbers(tree, tensors)

    def _touched(self, tree: Any, tensors: values.Tensors, like: Expected) -> None:
        """Loads that change one element each, or exchange two."""
        for name, larger, where in self._touches():
            with reference_at_work(self.sizes):
                self.oracle.touch(name, larger=larger, where=where)
            self._loaded_alone(f"one element of {name} changed", name, tree, tensors, like)
        for name in values.shuffled(self.oracle.touchable, self.oracle.generator)[:_EXCHANGES]:
            with reference_at_work(self.sizes):
                self.oracle.exchange(name)
            self._loaded_alone(f"two elements of {name} exchanged", name, tree, tensors, like)

    def _loaded_alone(self, what: str, name: str, tree: Any, tensors: values.Tensors, like: Expected) -> None:
        oracle = self.oracle
        with reference_at_work(self.sizes):
            (expected,) = oracle.targets(tree, [tensors], like)
            # What calls before left in buffers that outputs depend on goes back to what the reference begins with.
            names = {name, *(oracle.buffers if oracle.stateful(tree, tensors) else ())}
        matched = {name: theirs for name, theirs in self.matched.items() if name in names}
        self._renewed(what, tree, tensors, expected, matched, borrowed=True)

    def _touches(self) -> list[tuple[str, bool, int | None]]:
        """Of which tensors an element is to change, in secret order, whether slightly, and which element: of every
        tensor any one where there are not too many, and of a few several, among them the last and the first."""
        names = values.shuffled(self.oracle.touchable, self.oracle.generator)
        turns = max(_TOUCHES, min(2 * len(names), _MOST_TOUCHES)) if names else 0
        places = (divmod(turn, len(names)) for turn in range(turns))
        made = [(names[place], (lap + place) % 2 == 1, _PLACES[lap % len(_PLACES)]) for lap, place in places]
        return values.shuffled(made, self.oracle.generator)

    def _stretched(self, how: Stretch, tree: Any, tensors: values.Tensors) -> None:
        """Parameters far from where they began: a gain may be negative, a slope above one, a variance tiny. Where signs
        change, large inputs, too: a maximum that was taken before a gain is none behind it."""
        calls = [tensors]
        if how.negative and values.UNUSUAL not in self.oracle.subject.left_out:
            calls.append(values.apply(values.LARGE, tensors, self.oracle.generator))
        with ExitStack() as inside:
            with reference_at_work(self.sizes):
                found = inside.enter_context(self.oracle.stretched(how, tree, calls))
            for given, expected in found:
                self._renewed(how.name, tree, given, expected)

    def _other_numbers(self, tree: Any, tensors: values.Tensors) -> None:
        with reference_at_work(self.sizes):
            other = constants.with_other_numbers(self.oracle, tree, tensors)
            found = self.oracle.expect(other, [tensors]) if other is not None else []
        for expected in found:
            self._renewed("a number changed", other, tensors, expected)

    def _side_by_side(self, tree: Any, tensors: values.Tensors) -> None:
        """Two new modules, as a network has them, each with parameters of its own, called in turn: what one of them
        has prepared in a place that both look at is wrong for the other."""
        spare = self.oracle.subject.backend.free_bytes()
        held = sum(value.numel() * value.element_size() for value in self.oracle.parameters.values())
        if not self.oracle.touchable or (spare is not None and spare < _SPARE * held):
            return
        oracle, candidate = self.oracle, self.candidate
        known = []
        for other in (False, True):
            with reference_at_work(self.sizes):
                oracle.reload()
                (expected,) = oracle.expect(tree, [tensors])
            known.append((oracle.parameters, oracle.buffers, expected))
            names = candidate.construct("ModelNew", oracle.init, train=self.train, seed=7, beside=other)
            candidate.load_state(oracle.state_for(match_names(oracle.names, names)))
        for parameters, buffers, expected in (*reversed(known), known[1]):
            with reference_at_work(self.sizes):
                oracle.load(parameters, buffers)
            self._called(Case("two modules side by side", tensors, expected, 0), tree)
            candidate.swap()

    def _long_lived(self, tree: Any, tensors: values.Tensors) -> None:
        oracle, usual = self.oracle, (self.oracle.parameters, self.oracle.buffers)
        with reference_at_work(self.sizes):
            found = long_run_state.states(oracle)
        for calls, state in found:
            with reference_at_work(self.sizes):
                oracle.load(oracle.parameters, {**oracle.buffers, **state})
                (expected,) = oracle.expect(tree, [tensors])
            self._renewed(f"a state after {calls} calls", tree, tensors, expected)
        oracle.load(*usual)

    def _renewed(
        self,
        name: str,
        tree: Any,
        tensors: values.Tensors,
        expected: Expected,
        matched: Mapping[str, str] | None = None,
        *,
        borrowed: bool = False,
    ) -> None:
        """A call after a load of those parameters and buffers that are `matched`, of all where nothing is given."""
        self.candidate.load_state(self.oracle.state_for(self.matched if matched is None else matched))
        self._called(Case(name, tensors, expected, 0, borrowed=borrowed), tree)

    def _called(self, case: Case, tree: Any) -> None:
        reply = self.candidate.run(tree, [case.tensors], slot="second", timeout_s=self.call_limit_s)
        try:
            if case.expected.informative:
                self.compare(self.oracle, tree, [case], reply, self.sizes)
        finally:
            self.candidate.finish(reply)
        self.candidate.drop("second")
