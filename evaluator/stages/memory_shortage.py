"""A GPU's memory that runs out. Others on the GPU may have it: then nothing is said of a Candidate or a reference."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch

from evaluator.errors import EvaluatorError, Rejection, ShortOfMemory
from evaluator.types import DeviceKind, Verdict

if TYPE_CHECKING:
    from evaluator.stages.judge import Judge

Done = TypeVar("Done")
_WAIT_S, _POLL_S = 30.0, 0.1  # for how long others are waited for, and how often looked after
_OTHERS_SHARE = 1 / 4  # of the device's memory: a child may have the rest (`child.cuda_device`)


def _is_main_memory(error: Rejection) -> bool:
    """Whether a child used up the main memory that it had to itself, of which no other process takes any: it was ended
    for that, or Python told it so."""
    return "signal" in error.evidence or error.evidence.get("error") == "MemoryError"


def retry_on_shortage(judge: Judge, work: Callable[[], Done]) -> Done:
    """Do it. Where memory runs out, all that this judge holds is given back. If others hold much of the device all the
    same, they are waited for a while, and it is done again. EvaluatorError is raised if they do not end, or hold it
    once more; else the work is done once more, and what then runs out of memory is believed; of the judge's own memory
    EvaluatorError tells."""
    try:
        return _run_or_release(judge, work)
    except _ShortageError as short:
        found = str(short)  # the error itself would keep tensors in use
    if _held_by_others(judge):
        _wait_for_others(judge, found)
        try:
            return _run_or_release(judge, work)
        except _ShortageError as short:
            found = str(short)
        _raise_if_held_by_others(judge, found)
    try:
        with judge.session.trusting_memory_errors():
            return work()
    except Rejection as error:
        if error.verdict is Verdict.OUT_OF_MEMORY and not _is_main_memory(error):
            judge.release_memory()  # what a child of ours holds until it is gone is not others'
            _raise_if_held_by_others(judge, error.reason)
        raise
    except torch.OutOfMemoryError as error:  # ours: what a child runs out of it tells
        found = str(error)[:300]
    judge.release_memory()
    raise EvaluatorError(found)


class _ShortageError(Exception):
    """Memory ran out, nobody knows yet by whose fault."""


def _run_or_release(judge: Judge, work: Callable[[], Done]) -> Done:
    """Do it. Raises _ShortageError where memory runs out; then this judge holds none of it any more."""
    try:
        return work()
    except (ShortOfMemory, torch.OutOfMemoryError) as error:
        found = str(error)
    except Rejection as error:
        if error.verdict is not Verdict.OUT_OF_MEMORY or judge.backend.kind is DeviceKind.CPU or _is_main_memory(error):
            raise
        found = error.reason
    judge.release_memory()
    raise _ShortageError(found)


def _held_by_others(judge: Judge) -> int:
    """The bytes of the device that others hold, 0 where these are few."""
    held = judge.backend.held_by_others()
    return held if held > _OTHERS_SHARE * float(judge.device.facts.get("memory_bytes", math.inf)) else 0


def _wait_for_others(judge: Judge, found: str) -> None:
    """Return when others hold little. Raises EvaluatorError where they do not end. Nothing of this judge's runs, and it
    does not hold the device meanwhile."""
    end = time.monotonic() + _WAIT_S
    while _held_by_others(judge):
        if time.monotonic() > end:
            _raise_if_held_by_others(judge, found)
        time.sleep(_POLL_S)


def _raise_if_held_by_others(judge: Judge, found: str) -> None:
    """Raises EvaluatorError if others hold much."""
    if others := _held_by_others(judge):
        raise EvaluatorError(
            f"the device's memory ran out while other processes held {others / 2**30:.0f} GiB of it: judge again when"
            f" they are done ({found[:200]})"
        )
