"""Calls in a row with one module, and comparison of the last one of each case."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator.comparison.claims import tensor_claims
from evaluator.comparison.layout_checks import check_reply
from evaluator.correctness.cases import Case
from evaluator.correctness.compare_outputs import STAGE, uninitialised_note
from evaluator.correctness.context import CheckContext
from evaluator.errors import Rejection
from evaluator.types import Verdict


def compare_last_calls(
    context: CheckContext, cases: Sequence[Case], when: str, *, in_place: bool = False, spoil: bool = False
) -> None:
    """Run the calls of these cases, twice with `spoil`, and compare the last of each, except views of inputs.

    With `in_place` all inputs lie in the memory of the first. With `spoil` earlier outputs are overwritten. Raises
    Rejection.
    """
    candidate, label = context.candidate, context.sizes.label
    calls, repeats = [case.tensors for case in cases], 2 if spoil else 1
    limit_s = context.limit_s(repeats * len(cases))
    reply = candidate.run(
        context.tree, calls, slot="again", timeout_s=limit_s, repeats=repeats, in_place=in_place, spoil=spoil
    )
    last = reply.replies[-len(cases) :]
    try:
        for case, item in zip(cases, last, strict=True):
            check_reply(case.expected, item)
        found = candidate.fetch_calls([tensor_claims(item) for item in last])
        with context.reference_must_work():
            findings = [
                context.comparison.confirmed_finding(context.oracle, context.tree, case, views_replaced(case, out))
                for case, out in zip(cases, found, strict=True)
            ]
    finally:
        candidate.end_run(reply)
    candidate.drop("again")
    for finding, outputs in zip(findings, found, strict=True):
        if finding is not None:
            reason = f"{finding['reason']}{uninitialised_note(outputs)}, on {label} {when}"
            raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, workload=label, **finding["evidence"])


def output_views(case: Case) -> list[bool]:
    """Return for each output of the reference whether it is a view of an input."""
    return [bool(claim.get("alias")) for claim in tensor_claims(case.expected.reply)]


def views_replaced(case: Case, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Replace views of inputs by the reference's outputs, since their memory has been reused by now."""
    pairs = zip(outputs, case.expected.targets, output_views(case), strict=True)
    return [target.reference if view else output for output, target, view in pairs]
