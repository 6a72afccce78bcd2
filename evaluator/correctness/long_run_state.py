"""A module's buffers after many calls: what counts them, goes round or settles has done so by then."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from evaluator.errors import ChildError, LeaveOut
from evaluator.oracle.oracle import Oracle

LABEL = "a state after many calls"
_LEAST, _MORE = 200, 100  # calls: a warm-up of the usual length is over, a ring has been round
_AT_ONCE = 20
_LONG_S = 0.3


def states_after_many_calls(oracle: Oracle) -> list[tuple[int, Mapping[str, torch.Tensor]]]:
    """How many calls the reference has made, and what its buffers hold then: twice, of other inputs each, and the
    second time after one call more, since who has kept the first one's sums takes them for this one's. As many calls
    as the first has time for. None where the reference does not take so many. Raises ChildFault; LeaveOut where
    its device is lost."""
    count = _LEAST + int(torch.randint(_MORE, (1,), generator=oracle.generator))
    found: list[tuple[int, Mapping[str, torch.Tensor]]] = []
    try:
        for limit_s in (_LONG_S, float("inf")):
            found.append(_run_calls(oracle, count, limit_s))
            count = found[0][0] + 1
    except ChildError as fault:
        if fault.spoils:
            raise LeaveOut(LABEL, fault) from fault
        return []
    return found


def _run_calls(oracle: Oracle, count: int, limit_s: float) -> tuple[int, Mapping[str, torch.Tensor]]:
    draws = [oracle.inputs() for _ in range(2)]
    end, done = time.monotonic() + limit_s, 0
    oracle.subject.load_state(oracle.buffers)
    while done < count and (not done or time.monotonic() < end):
        few = min(_AT_ONCE, count - done)
        oracle.move(draws[0].tree, [draws[index % 2].tensors for index in range(few)])
        done += few
    return done, oracle.buffers_now()
