"""Retry when a GPU's memory runs out. If other processes hold it, neither Candidate nor reference is to blame."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from evaluator.device_session import DeviceSession
from evaluator.devices.base import DeviceBackend
from evaluator.errors import EvaluatorError, Rejection, ShortOfMemory
from evaluator.types import DeviceKind, Verdict

Done = TypeVar("Done")
Release = Callable[[], None]
_OTHERS_SHARE = 1 / 4  # of the device's memory: a child may have the rest (`child.gpu.device`)


@dataclass(frozen=True, slots=True)
class Patience:
    """The wait for others that hold the memory."""

    wait_s: float = 30.0
    poll_s: float = 0.1


def retry_on_shortage(
    work: Callable[[], Done], backend: DeviceBackend, session: DeviceSession, release: Release, patience: Patience
) -> Done:
    """Do the work; when memory runs out, `release` this judge's memory and retry.

    While others hold much of the device, wait for them before the retry. Raise EvaluatorError if they do not end, or
    hold it again. Otherwise the last try believes children that report a lack of memory, and raises EvaluatorError
    where the judge itself lacks it.
    """
    try:
        return _run_or_release(work, backend, release)
    except _ShortageError as short:
        found = str(short)  # the error itself would keep tensors alive
    if _held_by_others(backend):
        _wait_for_others(backend, found, patience)
        try:
            return _run_or_release(work, backend, release)
        except _ShortageError as short:
            found = str(short)
        _raise_if_held_by_others(backend, found)
    try:
        with session.references.trusting_memory_errors():
            return work()
    except Rejection as error:
        if error.verdict is Verdict.OUT_OF_MEMORY and not _is_main_memory(error):
            release()  # so that memory of our own children does not count as others'
            _raise_if_held_by_others(backend, error.reason)
        raise
    except torch.OutOfMemoryError as error:  # the judge's own memory: children report theirs
        found = str(error)[:300]
    release()
    raise EvaluatorError(found)


class _ShortageError(Exception):
    """Memory ran out for an unknown reason."""


def _is_main_memory(error: Rejection) -> bool:
    """Return True if a child exceeded its limit of main memory, which no other process uses: it was ended for that, or
    raised MemoryError."""
    return "signal" in error.evidence or error.evidence.get("error") == "MemoryError"


def _run_or_release(work: Callable[[], Done], backend: DeviceBackend, release: Release) -> Done:
    """Do the work. When memory runs out, release this judge's memory and raise _ShortageError."""
    try:
        return work()
    except (ShortOfMemory, torch.OutOfMemoryError) as error:
        found = str(error)
    except Rejection as error:
        if error.verdict is not Verdict.OUT_OF_MEMORY or backend.kind is DeviceKind.CPU or _is_main_memory(error):
            raise
        found = error.reason
    release()
    raise _ShortageError(found)


def _held_by_others(backend: DeviceBackend) -> int:
    """Return the bytes of the device that others hold, or 0 if these are few."""
    held = backend.held_by_others()
    return held if held > _OTHERS_SHARE * float(backend.describe().facts.get("memory_bytes", math.inf)) else 0


def _wait_for_others(backend: DeviceBackend, found: str, patience: Patience) -> None:
    """Wait until others hold little. Raises EvaluatorError if they do not end.

    Meanwhile no child of this judge runs, and it does not hold the device.
    """
    end = time.monotonic() + patience.wait_s
    while _held_by_others(backend):
        if time.monotonic() > end:
            _raise_if_held_by_others(backend, found)
        time.sleep(patience.poll_s)


def _raise_if_held_by_others(backend: DeviceBackend, found: str) -> None:
    """Raise EvaluatorError if others hold much."""
    if others := _held_by_others(backend):
        raise EvaluatorError(
            f"the device's memory ran out while other processes held {others / 2**30:.0f} GiB of it: judge again when"
            f" they are done ({found[:200]})"
        )
