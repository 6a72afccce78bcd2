"""Check a Candidate's correctness: calls on each set of sizes, every output compared with the oracle's."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from evaluator.child.protocol.layout import LayoutError
from evaluator.comparison.claims import tensor_claims
from evaluator.comparison.expected import Expected
from evaluator.comparison.layout_checks import check_no_reuse, check_reply
from evaluator.correctness import buffers
from evaluator.correctness.cases import RECIPE_CASES, TWIN_CASES, Case, PreparedCases, prepare_cases
from evaluator.correctness.compare_outputs import STAGE, Comparison, Report, uninitialised_note
from evaluator.correctness.shape_contract import ShapeContract
from evaluator.correctness.state_reload import StateReloads, reference_must_work
from evaluator.errors import ChildError, ChildFault, Rejection
from evaluator.inputs import values
from evaluator.inputs.sizes import Sizes, sizes_for_one_module
from evaluator.oracle.oracle import Oracle
from evaluator.oracle.state import match_names
from evaluator.subject import RunReply, Subject, rejection
from evaluator.types import Problem, Verdict

# Many calls with all outputs kept: their limits in calls, bytes and time; how many large outputs are compared, and the
# bytes up to which all are; the number of calls that are timed first.
_MANY, _MANY_BYTES, _MANY_US = 1200, 128 << 20, 300_000.0
_MANY_READ, _MANY_READ_BYTES = 6, 16 << 20
_MANY_FEW = 16
_STEP_S = 5.0  # of the limits that a slow reference widens, so that a busy machine does not
_SLOWER = 4.0  # a Candidate's calls may take this many times the reference's, if that exceeds its first-call limit


class Checker:
    """Checks a Candidate's child against a reference's. Raises Rejection with the Verdict.

    `candidate` is set before `check` and may be a different child for other sizes.
    """

    def __init__(
        self,
        problem: Problem,
        reference: Subject,
        generator: torch.Generator,
        first_call_s: float,
    ) -> None:
        self.problem, self.reference, self.generator = problem, reference, generator
        self.first_call_s = first_call_s
        self.report = Report()
        self.candidate: Subject
        self._ready: dict[str, PreparedCases | Rejection | None] = {}
        self._shape_contract = ShapeContract()
        self._sequences_run: set[bool] = set()

    @property
    def _comparison(self) -> Comparison:
        return Comparison(self.candidate, self.report, self.problem.bitwise)

    def prepare(self, sizes: Sizes, how: Callable[[], PreparedCases | None]) -> None:
        """Do the reference's part of `check` ahead of time with `how`. Raises nothing."""
        try:
            self._ready[sizes.label] = how()
        except Rejection as found:  # raised later: a Candidate that does not load is refused for that first
            self._ready[sizes.label] = found

    def prepared(self, sizes: Sizes) -> PreparedCases | None:
        """Do the reference's part of `check`. Raises Rejection."""
        return prepare_cases(self.problem, self.reference, sizes, self.generator, first=not self.report.checked)

    def check(self, sizes: Sizes) -> None:
        """Check one set of sizes. Skips varied sizes that the reference itself refuses."""
        if sizes.label in self.reference.left_out and not sizes.adversarial:
            self.report.skipped.append(sizes.shown_label)
            return
        try:
            self._check(sizes)
        except Rejection as found:
            raise _redacted(found, sizes) from found

    def _check(self, sizes: Sizes) -> None:
        ready = self._ready.pop(sizes.label) if sizes.label in self._ready else self.prepared(sizes)
        if isinstance(ready, Rejection):
            raise ready
        if ready is None or not all(self._has_contract_shapes(sizes, case.expected) for case in ready.cases[:1]):
            self.report.skipped += [] if sizes.layout else [sizes.shown_label]
            return
        self.report.skipped += ready.skipped
        if not ready.oracle.in_float64:
            self.report.oracle = ready.oracle.precision
        try:
            self._check_cases(ready.oracle, ready.tree, ready.cases, sizes)
        except (ChildFault, LayoutError) as fault:
            raise rejection(fault, STAGE, f"checking {sizes.label}") from fault
        label = sizes.shown_label
        self.report.checked[label] = self.report.checked.get(label, 0) + len(ready.cases)

    def _has_contract_shapes(self, sizes: Sizes, expected: Expected) -> bool:
        """Return True if the outputs have the shapes that the Workloads imply for these sizes."""
        shapes = [tuple(target.oracle.shape) for target in expected.targets]
        if sizes.adversarial and not sizes.hidden:
            self._shape_contract.learn(sizes.sizes, shapes)
        return sizes.adversarial or self._shape_contract.allows(sizes.sizes, shapes)

    def _check_cases(self, oracle: Oracle, tree: Any, cases: Sequence[Case], sizes: Sizes) -> None:
        candidate = self.candidate
        names = candidate.construct("ModelNew", oracle.init, train=self.problem.train, seed=7)
        matched = match_names(oracle.names, names)
        candidate.load_state(oracle.state_for(matched))
        self._check_buffers(oracle, tree, matched, sizes)
        limit_s = self._limit_s(oracle, len(cases))
        reply = candidate.run(tree, [case.tensors for case in cases], slot="first", timeout_s=limit_s)
        try:
            snapshot = self._comparison.compare(oracle, tree, cases, reply, sizes)
        finally:
            candidate.finish(reply)
        if cases and not oracle.mutated(tree):
            plainest, call_us = min(cases, key=lambda case: case.group), reply.wall_us / len(cases)
            known = not oracle.stateful(tree, plainest.tensors)
            self._check_many_calls(oracle, plainest, tree, call_us, sizes, values_known=known)
            if known:
                self._check_overwritten_output(oracle, tree, plainest, sizes)
                self._check_reused_memory(oracle, tree, cases, sizes)
        self._check_parameters(oracle, matched, sizes)
        before = min(cases, key=lambda case: case.group).tensors if cases else oracle.inputs().tensors
        self._state_reloads(oracle, matched, sizes).run(tree, before, first=not self.report.checked)
        self._check_size_sequence(oracle, sizes, moving=oracle.changes_buffers(tree, before))
        self._check_outputs_unchanged(reply, snapshot)
        candidate.drop("first")
        if not sizes.hidden and sizes.adversarial and cases:
            self.report.operations |= candidate.observe(tree, cases[0].tensors, timeout_s=limit_s)

    def _limit_s(self, oracle: Oracle, calls: int) -> float:
        """Return the limit for so many calls of any sizes; a slow reference widens it in whole steps."""
        return max(self.first_call_s, _SLOWER * calls * oracle.slowest_call_s // _STEP_S * _STEP_S)

    def _state_reloads(self, oracle: Oracle, matched: Mapping[str, str], sizes: Sizes) -> StateReloads:
        limit_s = self._limit_s(oracle, 1)
        return StateReloads(
            self.candidate, oracle, matched, sizes, self.problem.train, limit_s, self._comparison.compare
        )

    def _check_buffers(self, oracle: Oracle, tree: Any, matched: Mapping[str, str], sizes: Sizes) -> None:
        """Compare buffers that forward changes with the reference's after equal calls."""
        if not oracle.buffers:
            return
        with reference_must_work(sizes):
            calls = [oracle.inputs().tensors for _ in range(buffers.CALLS)]
            found = [(calls, oracle.changed_buffers(tree, calls), sizes.label)]
        if not self.report.checked:
            found += self._calls_with_nan(oracle, tree, calls, sizes)
        candidate = self.candidate
        for made, wanted, where in found:
            if wanted:
                candidate.finish(candidate.run(tree, made, slot="state", timeout_s=self._limit_s(oracle, len(made))))
                candidate.drop("state")
                buffers.compare(candidate, wanted, matched, len(made), STAGE, where)
                candidate.load_state(oracle.state_for(matched))

    def _calls_with_nan(
        self, oracle: Oracle, tree: Any, calls: Sequence[values.Tensors], sizes: Sizes
    ) -> list[tuple[list[values.Tensors], dict[str, torch.Tensor], str]]:
        """Return a few calls, the last with a NaN, and the buffers after them: some count non-finite values.

        Returns [] if the reference does not accept a NaN.
        """
        made = [*calls[:-1], values.apply(values.WITH_NAN, calls[-1], self.generator)]
        if values.NOT_FINITE in self.reference.left_out or oracle.try_calls(tree, made[-1:]) is None:
            return []
        with reference_must_work(sizes):
            return [(made, oracle.changed_buffers(tree, made), f"{sizes.label}, a NaN in the last one")]

    def _check_parameters(self, oracle: Oracle, matched: Mapping[str, str], sizes: Sizes) -> None:
        """Refuse a forward that changes parameters, unless the reference changes them too: a user who saves them or
        falls back to the reference needs them as they were loaded."""
        if not oracle.parameters or self.report.checked:
            return
        changed = buffers.changed_parameters(self.candidate, oracle.parameters, matched)
        if not changed:
            return
        with reference_must_work(sizes):
            now = oracle.current_parameters()
        for name in changed:
            if name in now and values.same_bits(now[name], oracle.parameters[name]):
                reason = f"forward changes the parameter {name}, on {sizes.label}: leave parameters as they are loaded"
                raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, check="parameters", parameter=name)

    def _check_size_sequence(self, oracle: Oracle, sizes: Sizes, *, moving: bool) -> None:
        """Call one new module with several sizes in turn: data cached in one call is wrong for the next.

        Done once for shown and once for held-out Workloads. With `moving` buffers each call begins with the
        reference's.
        """
        if not sizes.adversarial or sizes.hidden in self._sequences_run:
            return
        self._sequences_run.add(sizes.hidden)
        with reference_must_work(sizes):
            workloads = self.problem.workloads_for(self.reference.backend.kind)
            turns = sizes_for_one_module(
                self.problem, workloads, sizes, self.reference.left_out, oracle.builds_same_module
            )
            found = {one.label: oracle.expect_at(one) for one in turns}
        known = [(one, *made) for one in turns if (made := found[one.label]) is not None]
        known = [turn for turn in known if self._has_contract_shapes(turn[0], turn[-1])]
        if len({one.label for one, *_ in known}) < 2:
            return
        names = self.candidate.construct("ModelNew", oracle.init, train=self.problem.train, seed=7)
        state = oracle.state_for(match_names(oracle.names, names))
        self.candidate.load_state(state)
        before = ""
        for one, tree, tensors, expected in known:
            if before and moving:
                self.candidate.load_state(state)
            name = f"a draw, after a call with {before} in the same module" if before else "a draw"
            reply = self.candidate.run(tree, [tensors], slot="turn", timeout_s=self._limit_s(oracle, 1))
            try:
                self._comparison.compare(oracle, tree, [Case(name, tensors, expected, 0)], reply, one)
            finally:
                self.candidate.finish(reply)
            self.candidate.drop("turn")
            self._call_with_nan(tree, tensors)
            before = one.label

    def _call_with_nan(self, tree: Any, tensors: values.Tensors) -> None:
        """Call with NaN everywhere and ignore the outputs, so that leftovers in a workspace are NaN, too."""
        if values.NOT_FINITE in self.reference.left_out:
            return
        spoiled = tuple(torch.full_like(t, math.nan) if t.is_floating_point() else t for t in tensors)
        with contextlib.suppress(ChildError):  # such values may be refused
            self.candidate.finish(self.candidate.run(tree, [spoiled], slot="turn", timeout_s=self.first_call_s))
            self.candidate.drop("turn")

    def _check_reused_memory(self, oracle: Oracle, tree: Any, cases: Sequence[Case], sizes: Sizes) -> None:
        """Call with draws in the same memory in turn, some nearly equal, the first one again at the end.

        Allocators reuse addresses, so an address does not identify its content. For shown Workloads only.
        """
        known = {case.name: case for case in cases}
        turns = [
            known[name] for name in (RECIPE_CASES[0], *TWIN_CASES, *RECIPE_CASES[1:], RECIPE_CASES[0]) if name in known
        ]
        if sizes.hidden or not sizes.adversarial or len(turns) < 2 or all(_output_views(turns[0])):
            return
        self._compare_in_a_row(
            oracle, tree, turns, sizes, "when the call before had other inputs at the same address", in_place=True
        )

    def _check_overwritten_output(self, oracle: Oracle, tree: Any, case: Case, sizes: Sizes) -> None:
        """Make two equal calls on a new draw and overwrite the output of the first between them.

        The output belongs to the caller. For the first sizes only; `case` is another draw.
        """
        if self.report.checked or any(_output_views(case)):
            return
        with reference_must_work(sizes):
            made = oracle.inputs()
            (expected,) = oracle.targets(tree, [made.tensors], case.expected)
        again = [Case("a draw", made.tensors, expected, 0, borrowed_limits=True)]
        self._compare_in_a_row(
            oracle, tree, again, sizes, "after the output of an equal call was overwritten", spoil=True
        )

    def _compare_in_a_row(
        self,
        oracle: Oracle,
        tree: Any,
        turns: Sequence[Case],
        sizes: Sizes,
        when: str,
        *,
        in_place: bool = False,
        spoil: bool = False,
    ) -> None:
        """Run the calls of these cases, twice with `spoil`, and compare the last of each, except views of inputs.

        Raises Rejection.
        """
        calls, repeats = [case.tensors for case in turns], 2 if spoil else 1
        limit_s = self._limit_s(oracle, repeats * len(turns))
        reply = self.candidate.run(
            tree, calls, slot="again", timeout_s=limit_s, repeats=repeats, in_place=in_place, spoil=spoil
        )
        last = reply.replies[-len(turns) :]
        try:
            for case, item in zip(turns, last, strict=True):
                check_reply(case.expected, item)
            found = self.candidate.fetch_calls([tensor_claims(item) for item in last])
            with reference_must_work(sizes):
                findings = [
                    self._comparison.confirmed_finding(oracle, tree, case, _views_replaced(case, out))
                    for case, out in zip(turns, found, strict=True)
                ]
        finally:
            self.candidate.finish(reply)
        self.candidate.drop("again")
        for finding, outputs in zip(findings, found, strict=True):
            if finding is not None:
                reason = f"{finding['reason']}{uninitialised_note(outputs)}, on {sizes.label} {when}"
                raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, workload=sizes.label, **finding["evidence"])

    def _check_many_calls(
        self, oracle: Oracle, case: Case, tree: Any, most_us: float, sizes: Sizes, *, values_known: bool
    ) -> None:
        """Make as many calls in a row as a short time and little memory allow, and keep the memory of all outputs.

        The tensors are not kept. So a kernel that returns a few buffers in turn, or reuses one whose tensor is gone,
        has to return its first one again. For the first two shown sizes; a call takes at most `most_us`.
        """
        if all(_output_views(case)) or sizes.hidden or len(self.report.checked) > 1:
            return
        bytes_each = sum(t.reference.numel() * t.reference.element_size() for t in case.expected.targets)
        most = min(_MANY, _MANY_BYTES // max(1, bytes_each))
        few = int(min(most, _MANY_FEW, _MANY_US / max(1.0, most_us)))
        if few < 2:
            return
        count = max(few, int(min(most, _MANY_US / self._call_us(case, tree, few))))
        candidate = self.candidate
        reply = candidate.run(
            tree, [case.tensors], slot="many", timeout_s=self.first_call_s, repeats=count, detach=True
        )
        try:
            for item in reply.replies:
                check_reply(case.expected, item)
            check_no_reuse(reply.replies, _output_views(case))
            picks = torch.randperm(count, generator=self.generator).tolist() if values_known else []
            picks = picks if count * bytes_each <= _MANY_READ_BYTES else picks[:_MANY_READ]
            self._compare_equal_calls(oracle, tree, case, reply, picks, sizes)
        finally:
            candidate.finish(reply)
        candidate.drop("many")

    def _call_us(self, case: Case, tree: Any, count: int) -> float:
        """Return the time of one of `count` calls in a row, since a request costs as much as many calls of a GPU."""
        reply = self.candidate.run(tree, [case.tensors], slot="few", timeout_s=self.first_call_s, repeats=count)
        self.candidate.finish(reply)
        self.candidate.drop("few")
        return max(1.0, reply.wall_us / count)

    def _compare_equal_calls(
        self, oracle: Oracle, tree: Any, case: Case, reply: RunReply, picks: Sequence[int], sizes: Sizes
    ) -> None:
        """Compare the outputs of some of many calls on equal inputs, to find kernels that are wrong occasionally."""
        right: list[torch.Tensor] | None = None
        found = self.candidate.fetch_calls([tensor_claims(reply.replies[pick]) for pick in picks])
        for pick, outputs in zip(picks, found, strict=True):
            if right is not None and all(map(values.same_bits, outputs, right)):
                continue
            finding = self._comparison.confirmed_finding(oracle, tree, case, _views_replaced(case, outputs))
            if finding is not None:
                reason = f"{finding['reason']}, in call {pick + 1} of {len(reply.replies)} equal ones on {sizes.label}"
                raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, inputs=case.name, **finding["evidence"])
            right = outputs

    def _check_outputs_unchanged(self, reply: RunReply, snapshot: Sequence[Sequence[torch.Tensor]]) -> None:
        self.candidate.child.freeze()
        try:
            now = self.candidate.fetch_calls([tensor_claims(item) for item in reply.replies])
            for before, after in zip(snapshot, now, strict=True):
                if any(not values.same_bits(a, b) for a, b in zip(after, before, strict=False)):
                    raise Rejection(
                        Verdict.INCORRECT_VALUES,
                        STAGE,
                        "an output was changed after it was returned",
                        check="changed_later",
                    )
        finally:
            self.candidate.child.thaw()


def _output_views(case: Case) -> list[bool]:
    """Return for each output of the reference whether it is a view of an input."""
    return [bool(claim.get("alias")) for claim in tensor_claims(case.expected.reply)]


def _views_replaced(case: Case, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Replace views of inputs by the reference's outputs, since their memory has been reused by now."""
    pairs = zip(outputs, case.expected.targets, _output_views(case), strict=True)
    return [target.reference if view else output for output, target, view in pairs]


def _redacted(found: Rejection, sizes: Sizes) -> Rejection:
    """Reduce a failure on held-out data to its class."""
    if not sizes.hidden or found.verdict is Verdict.INVALID_REFERENCE:
        return found
    evidence = {"check": found.evidence.get("check", ""), "held_out": True}
    return Rejection(found.verdict, found.stage, f"fails on a held-out workload ({found.verdict})", **evidence)
