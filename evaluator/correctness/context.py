"""The context of a correctness check: one set of sizes, with the Candidate's module constructed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from evaluator.comparison.expected import Expected
from evaluator.correctness.cases import Case
from evaluator.correctness.compare_outputs import Comparison, Report
from evaluator.correctness.foreseen import Foreseen, Step
from evaluator.correctness.reference_faults import reference_must_work
from evaluator.correctness.shape_contract import ShapeContract
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import match_names
from evaluator.subject import RunReply, Subject
from evaluator.types import Problem

_STEP_S = 5.0  # of the limits that a slow reference widens, so that a busy machine does not
_SLOWER = 4.0  # a Candidate's calls may take this many times the reference's, if that exceeds its first-call limit


@dataclass(frozen=True, slots=True)
class FirstCalls:
    """The calls of all cases with the outputs that they returned."""

    reply: RunReply
    outputs: Sequence[Sequence[torch.Tensor]]


@dataclass(kw_only=True)
class CheckContext:
    """One set of sizes under check. After a `brief` check others follow, or the Candidate is too slow for them.

    `size_sequences` notes for which Workloads, shown and held-out ones, a sequence of sizes has been called. `matched`
    maps the oracle's names of parameters and buffers to the Candidate's.
    """

    problem: Problem
    candidate: Subject
    reference: Subject
    oracle: Oracle
    sizes: Sizes
    tree: Any
    cases: Sequence[Case]
    report: Report
    generator: torch.Generator
    first_call_s: float
    shape_contract: ShapeContract
    size_sequences: set[bool]
    brief: bool = False
    foreseen: Foreseen = field(default_factory=Foreseen)
    matched: Mapping[str, str] = field(default_factory=dict)
    made_dtypes: Mapping[str, str] = field(default_factory=dict)  # of the Candidate's state when it was constructed
    first_calls: FirstCalls | None = None

    @property
    def first_sizes(self) -> bool:
        return not self.report.checked

    @property
    def is_shown_workload(self) -> bool:
        return self.sizes.adversarial and not self.sizes.hidden

    @property
    def comparison(self) -> Comparison:
        return Comparison(self.candidate, self.report, self.problem.bitwise)

    @cached_property
    def plainest(self) -> Case | None:
        """The case with the recipe's own inputs."""
        return min(self.cases, key=lambda case: case.group, default=None)

    @cached_property
    def plain_inputs(self) -> values.Tensors:
        """Inputs that the Candidate has seen before, if there are cases."""
        return self.plainest.tensors if self.plainest else self.oracle.inputs().tensors

    @property
    def repeatable(self) -> Case | None:
        """The plainest case if calls do not change its inputs, so that they can be repeated."""
        return None if self.oracle.mutated(self.tree) else self.plainest

    @property
    def repeatable_without_state(self) -> Case | None:
        """The same if outputs do not depend on earlier calls either."""
        case = self.repeatable
        return None if case is None or self.oracle.stateful(self.tree, case.tensors) else case

    def limit_s(self, calls: int) -> float:
        """Return the limit for so many calls of any sizes; a slow reference widens it in whole steps."""
        return max(self.first_call_s, _SLOWER * calls * self.oracle.slowest_call_s // _STEP_S * _STEP_S)

    def construct_module(self) -> None:
        """Construct the module that is checked."""
        self.matched = self.construct()

    def construct(self, *, keep_previous: bool = False) -> Mapping[str, str]:
        """Construct a module of the Candidate with the oracle's state; return its names for that."""
        names = self.candidate.construct(
            "ModelNew", self.oracle.init, train=self.problem.train, seed=7, keep_previous=keep_previous
        )
        matched = match_names(self.oracle.names, names)
        self.made_dtypes = {one.name: str(one.claim.get("dtype")) for one in (*names.parameters, *names.buffers)}
        self.candidate.load_state(self.oracle.state_for(matched))
        return matched

    def compare_call(self, case: Case, tree: Any = None) -> None:
        """Call with the inputs of a case and compare. Raises Rejection. `tree` replaces that of the sizes."""
        tree = self.tree if tree is None else tree
        reply = self.candidate.run(tree, [case.tensors], slot="second", timeout_s=self.limit_s(1))
        try:
            if case.expected.informative:
                self.comparison.compare(self.oracle, tree, [case], reply, self.sizes)
        finally:
            self.candidate.end_run(reply)
        self.candidate.drop("second")

    def call_after_load(
        self,
        name: str,
        tensors: values.Tensors,
        expected: Expected,
        matched: Mapping[str, str] | None = None,
        *,
        tree: Any = None,
        borrowed_limits: bool = False,
    ) -> None:
        """Compare a call after loading the `matched` parameters and buffers, or all of them by default."""
        self.candidate.load_state(self.oracle.state_for(self.matched if matched is None else matched))
        self.compare_call(Case(name, tensors, expected, 0, borrowed_limits=borrowed_limits), tree)

    def steps(self, check: str, make: Callable[[], Iterable[Step]]) -> Iterator[Step]:
        """Yield the steps of a check that an earlier Candidate took, or make them."""
        yield from self.foreseen.take(check, self.oracle, make)
        with self.reference_must_work():
            self.oracle.catch_up()

    def take_step(self, step: Step) -> None:
        """Load into the Candidate's module what the step says, call it, and compare. Raises Rejection."""
        matched = {n: own for n, own in self.matched.items() if step.loaded is None or n in step.loaded}
        self.call_after_load(
            step.name, step.tensors, step.expected, matched, tree=step.tree, borrowed_limits=step.borrowed_limits
        )

    def reference_must_work(self) -> AbstractContextManager[None]:
        """Raise ComparatorFailed for a fault of the reference within this block."""
        return reference_must_work(self.sizes)
