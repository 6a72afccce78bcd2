"""The protocol of a correctness check."""

from __future__ import annotations

from typing import Protocol

from evaluator.correctness.context import CheckContext


class CorrectnessCheck(Protocol):
    """A check of a Candidate's module on one set of sizes."""

    @property
    def name(self) -> str: ...

    def run(self, context: CheckContext) -> None:
        """Check the Candidate, or return if the check does not apply to these sizes.

        Raises Rejection with the Verdict, ChildFault and LayoutError for a fault of the Candidate's child, and
        ComparatorFailed for one of the reference.
        """
