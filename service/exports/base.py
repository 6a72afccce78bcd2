"""The interface of an export format, and the values that a kernel's export is made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evaluator.types import Candidate, DeviceKind, Evaluation, Problem, Ratio, WorkloadFacts

Subject = TypeVar("Subject")


class Unsupported(Exception):
    """A format that cannot carry this kernel; the message has the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Generic[Subject]):
    """A format of downloads. `build` gives the file or raises Unsupported; `about` describes it to people.

    `file_name` is the whole name, where others expect that; else it is made of the subject's name and the extension.
    """

    about: str
    media_type: str
    extension: str
    build: Callable[[Subject], str | bytes]
    file_name: str | None = None

    @property
    def schema(self) -> dict[str, str]:
        """Return the file's schema for the API's document."""
        return {"type": "string"} if self.media_type.startswith("text/") else {"type": "string", "format": "binary"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A kernel with its evidence. `evaluation` speaks for the Candidate: its confirmation if it has one.

    `estimate` is set if a later Baseline overtook the one that the Evaluation timed: the speedup over that one.
    `facts` are the Admission's, from which the guard knows the domain; without any, the file always falls back to the
    reference.
    """

    problem: Problem
    candidate: Candidate
    candidate_id: str
    device_kind: DeviceKind
    evaluation: Evaluation | None
    confirmed: bool
    facts: tuple[WorkloadFacts, ...]
    dated: str
    proposed_by: str
    estimate: Ratio | None = None
    stored_hash: str = ""

    @property
    def problem_hash(self) -> str:
        """Return the stored Problem's hash, whatever `problem` leaves out of it."""
        return self.stored_hash or self.problem.hash


def file_stem(problem_name: str, device_kind: DeviceKind) -> str:
    """Return a file name without its extension that is a module name too: `rmsnorm_residual_cpu`."""
    stem = re.sub(r"[^a-z0-9]+", "_", problem_name.lower()).strip("_")[:80] or "kernel"
    return f"{'k_' if stem[0].isdigit() else ''}{stem}_{device_kind.value}"
