"""A GPU's memory that runs out. Others on the GPU may have it: then nothing is said of a Candidate or a reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch

from evaluator.errors import EvaluatorError, Rejection, ShortOfMemory
from evaluator.types import DeviceKind, Verdict

if TYPE_CHECKING:
    from evaluator.judge import Judge

Done = TypeVar("Done")
_OTHERS_SHARE = 1 / 4  # of the device's memory: a child may have the rest (`child.cuda_device`)


def _of_its_own(error: Rejection) -> bool:
    """Whether a child used up the main memory that it had to itself, of which no other process takes any: it was ended
    for that, or Python told it so."""
    return "signal" in error.evidence or error.evidence.get("error") == "MemoryError"


def enough(judge: Judge, work: Callable[[], Done]) -> Done:
    """Do it. Where memory runs out, all that this judge holds is given back; if others hold much of the device all the
    same, EvaluatorError is raised, else the work is done once more, and what then runs out of memory is believed; of
    the judge's own memory EvaluatorError tells."""
    try:
        return work()
    except (ShortOfMemory, torch.OutOfMemoryError) as error:
        found = str(error)[:200]  # the error itself would keep tensors in use
    except Rejection as error:
        if error.verdict is not Verdict.OUT_OF_MEMORY or judge.backend.kind is DeviceKind.CPU or _of_its_own(error):
            raise
        found = error.reason[:200]
    judge.release()
    others = judge.backend.held_by_others()
    if others > _OTHERS_SHARE * float(judge.device.facts.get("memory_bytes", math.inf)):
        raise EvaluatorError(
            f"the device's memory ran out while other processes held {others / 2**30:.0f} GiB of it: judge again when"
            f" they are done ({found})"
        )
    with judge.room.believed():
        try:
            return work()
        except torch.OutOfMemoryError as error:  # ours: what a child runs out of it tells
            found = str(error)[:300]
    judge.release()
    raise EvaluatorError(found)
