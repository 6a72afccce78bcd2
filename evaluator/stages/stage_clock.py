"""How long each stage of judging took, and how long what a Candidate does may take."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.types import Candidate, Stage

_COMPILES = re.compile(r"\btorch\.compile\b|\bimport compile\b|_inductor|_dynamo|torch\.jit|load_inline|cpp_extension")


class StageClock:
    """Seconds by stage, and the stage that is going on."""

    def __init__(self) -> None:
        self.duration_s: dict[str, float] = {}
        self.stage = Stage.SCREEN

    @contextmanager
    def during(self, stage: Stage) -> Iterator[None]:
        self.stage = stage
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = self.duration_s.get(str(stage), 0.0) + time.perf_counter() - start
            self.duration_s[str(stage)] = round(spent, 4)


def first_call_limit_s(candidate: Candidate) -> float:
    """How long the first calls may take: compilers run in them where a Candidate uses one."""
    compiles = candidate.language in ("triton", "cuda") or _COMPILES.search(candidate.source)
    return 60.0 if compiles else 10.0


def load_limit_s(candidate: Candidate) -> float:
    """How long importing the module may take."""
    if "cpp_extension" in candidate.source:
        return 120.0
    compiles = candidate.language != "torch" or _COMPILES.search(candidate.source)
    return 60.0 if compiles else 10.0
