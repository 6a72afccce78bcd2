"""Many calls in a row with all outputs kept: reused output buffers, and kernels that are wrong occasionally."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator.comparison.claims import tensor_claims
from evaluator.comparison.layout_checks import check_no_reuse, check_reply
from evaluator.correctness.cases import Case
from evaluator.correctness.compare_outputs import STAGE
from evaluator.correctness.context import CheckContext
from evaluator.correctness.repeated_calls import output_views, views_replaced
from evaluator.errors import Rejection
from evaluator.inputs import values
from evaluator.subject import RunReply
from evaluator.types import Verdict

_MOST_CALLS, _MOST_BYTES, _MOST_US = 1200, 128 << 20, 300_000.0  # limits of calls, memory of outputs and time
_USUAL_CALLS, _USUAL_MOST_US = 400, 1_000_000.0  # also on a busy machine, whose calls look slow
_COMPARED_LARGE, _ALL_COMPARED_BYTES = 6, 16 << 20  # outputs that are compared; all of them up to so many bytes
_TIMED_FIRST = 16  # calls


class ManyCalls:
    """Make as many calls in a row as a short time and little memory allow, and keep the memory of all outputs.

    The tensors are not kept. So a kernel that returns a few buffers in turn, or reuses one after its tensor is gone,
    has to return its first one again. For the first two shown sizes.
    """

    name = "many calls"

    def run(self, context: CheckContext) -> None:
        case = context.repeatable
        if case is None or all(output_views(case)) or context.sizes.hidden or len(context.report.checked) > 1:
            return
        bytes_each = sum(t.reference.numel() * t.reference.element_size() for t in case.expected.targets)
        count = _count(context, case, bytes_each)
        if count < 2:
            return
        candidate = context.candidate
        reply = candidate.run(
            context.tree, [case.tensors], slot="many", timeout_s=context.first_call_s, repeats=count, detach=True
        )
        try:
            for item in reply.replies:
                check_reply(case.expected, item)
            check_no_reuse(reply.replies, output_views(case))
            known = context.repeatable_without_state is not None
            picks = torch.randperm(count, generator=context.generator).tolist() if known else []
            picks = picks if count * bytes_each <= _ALL_COMPARED_BYTES else picks[:_COMPARED_LARGE]
            _compare(context, case, reply, picks)
        finally:
            candidate.end_run(reply)
        candidate.drop("many")


def _count(context: CheckContext, case: Case, bytes_each: int) -> int:
    """Return the number of calls that time and memory allow, less than 2 for none."""
    assert context.first_calls is not None
    most_us = context.first_calls.reply.wall_us / len(context.cases)  # of a call
    most = min(_MOST_CALLS, _MOST_BYTES // max(1, bytes_each))
    few = int(min(most, _TIMED_FIRST, _MOST_US / max(1.0, most_us)))
    if few < 2:
        return few
    call_us = _call_us(context, case, few)
    usual = min(_USUAL_CALLS, _USUAL_MOST_US / call_us)
    return max(few, int(min(most, max(usual, _MOST_US / call_us))))


def _call_us(context: CheckContext, case: Case, count: int) -> float:
    """Return the time of one of `count` calls in a row, since a request costs as much as many calls of a GPU."""
    limit_s = context.first_call_s
    reply = context.candidate.run(context.tree, [case.tensors], slot="few", timeout_s=limit_s, repeats=count)
    context.candidate.end_run(reply)
    context.candidate.drop("few")
    return max(1.0, reply.wall_us / count)


def _compare(context: CheckContext, case: Case, reply: RunReply, picks: Sequence[int]) -> None:
    """Compare the outputs of some of many calls on equal inputs, to find kernels that are wrong occasionally."""
    right: list[torch.Tensor] | None = None
    found = context.candidate.fetch_calls([tensor_claims(reply.replies[pick]) for pick in picks])
    for pick, outputs in zip(picks, found, strict=True):
        if right is not None and all(map(values.same_bits, outputs, right)):
            continue
        finding = context.comparison.confirmed_finding(
            context.oracle, context.tree, case, views_replaced(case, outputs)
        )
        if finding is not None:
            place = f"in call {pick + 1} of {len(reply.replies)} equal ones on {context.sizes.label}"
            reason = f"{finding['reason']}, {place}"
            raise Rejection(Verdict.INCORRECT_VALUES, STAGE, reason, inputs=case.name, **finding["evidence"])
        right = outputs
