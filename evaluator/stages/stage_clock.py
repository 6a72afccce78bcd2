"""The duration of each stage of judging, and time limits of a Candidate's operations."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.devices.device_lock import waited_s
from evaluator.languages import adapter
from evaluator.types import Candidate, Stage

_COMPILES = re.compile(r"\btorch\.compile\b|\bimport compile\b|_inductor|_dynamo|torch\.jit|load_inline|cpp_extension")


class StageClock:
    """The seconds of each stage, without the waiting for a device that another judge times on; the current stage."""

    def __init__(self) -> None:
        self.duration_s: dict[str, float] = {}
        self.stage = Stage.SCREEN

    @contextmanager
    def during(self, stage: Stage) -> Iterator[None]:
        self.stage = stage
        start, waited = time.perf_counter(), waited_s()
        try:
            yield
        finally:
            took = time.perf_counter() - start - (waited_s() - waited)
            spent = self.duration_s.get(str(stage), 0.0) + took
            self.duration_s[str(stage)] = round(spent, 4)


def first_call_limit_s(candidate: Candidate) -> float:
    """Return the limit for the first calls, in which compilers run if a Candidate uses one."""
    compiles = adapter(candidate.language).compiles_on_first_call or _COMPILES.search(candidate.source)
    return 60.0 if compiles else 10.0


def load_limit_s(candidate: Candidate) -> float:
    """Return the limit for importing the module."""
    if "cpp_extension" in candidate.source:
        return 120.0
    compiles = adapter(candidate.language).compiles_on_import or _COMPILES.search(candidate.source)
    return 60.0 if compiles else 10.0
