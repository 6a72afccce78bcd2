"""Buffers of a module after many calls: counters have grown, rings have wrapped and averages have settled by then."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from evaluator.correctness.context import CheckContext
from evaluator.errors import ChildError, UnsupportedCase
from evaluator.oracle.oracle import Oracle

LABEL = "a state after many calls"
_LEAST, _MORE = 200, 100  # calls: longer than a usual warm-up or ring
_AT_ONCE = 20
_LONG_S = 0.3


class LongRunState:
    """For modules with state, on the first shown sizes."""

    name = "long-run state"

    def run(self, context: CheckContext) -> None:
        oracle, tree, tensors = context.oracle, context.tree, context.plain_inputs
        if not context.is_shown_workload or not context.first_sizes or not oracle.stateful(tree, tensors):
            return
        if LABEL in oracle.subject.left_out:
            return
        usual = oracle.parameters, oracle.buffers
        with context.reference_must_work():
            found = _states_after_many_calls(oracle)
        for calls, state in found:
            with context.reference_must_work():
                oracle.load(oracle.parameters, {**oracle.buffers, **state})
                (expected,) = oracle.expect(tree, [tensors])
            context.call_after_load(f"a state after {calls} calls", tensors, expected)
        oracle.load(*usual)


def _states_after_many_calls(oracle: Oracle) -> list[tuple[int, Mapping[str, torch.Tensor]]]:
    """Return two states of the reference: the number of calls made, and its buffers after them.

    Each state is of other inputs. The second takes one call more than the first, so that sums which were cached at the
    first are wrong for it. The first state's time limit decides the number of calls. Returns [] if the reference fails
    on so many calls. Raises ChildFault, and UnsupportedCase where its device is lost.
    """
    count = _LEAST + int(torch.randint(_MORE, (1,), generator=oracle.generator))
    found: list[tuple[int, Mapping[str, torch.Tensor]]] = []
    try:
        for limit_s in (_LONG_S, float("inf")):
            found.append(_run_calls(oracle, count, limit_s))
            count = found[0][0] + 1
    except ChildError as fault:
        if fault.loses_device:
            raise UnsupportedCase(LABEL, fault) from fault
        return []
    return found


def _run_calls(oracle: Oracle, count: int, limit_s: float) -> tuple[int, Mapping[str, torch.Tensor]]:
    draws = [oracle.inputs() for _ in range(2)]
    end, done = time.monotonic() + limit_s, 0
    oracle.subject.load_state(oracle.buffers)
    while done < count and (not done or time.monotonic() < end):
        few = min(_AT_ONCE, count - done)
        oracle.run_calls(draws[0].tree, [draws[index % 2].tensors for index in range(few)])
        done += few
    return done, oracle.current_buffers()
