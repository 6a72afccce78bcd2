"""Define every error that the judge raises on purpose.

EvaluatorError
├── ProblemError              a Problem's source is invalid; the message says where and what to do
├── Rejection                 a Candidate (or reference) is judged: ends an Evaluation with a Verdict
├── ComparatorFailed          a Baseline or Champion failed while it was timed
├── UnsupportedCase           a reference fails on a case that no Workload has, so the case is skipped
├── ShortOfMemory             a GPU ran out of memory in a trusted child: others may hold the memory
├── LockTimeout               another process kept the device locked
├── CageError                 this machine or our own set-up failed; never the Candidate's fault
└── ChildFault                a fault of a caged child, with enough detail for a Verdict
    ├── ChildError            an operation raised inside the child; the child lives on
    ├── ChildTimeout          no reply in time; the child has been killed
    ├── ChildCrashed          the child's process ended (signal or exit status)
    ├── ChildUnstoppable      the child's processes cannot be stopped; they have been killed
    ├── ChildResumed          the child ran while it was stopped; it has been killed
    └── ChildProtocolError    the child's reply was malformed, too large or unexpected; it has been killed
"""

from __future__ import annotations

import signal
from typing import Any

from evaluator.types import Stage, Verdict


class EvaluatorError(Exception):
    """Root of the judge's errors."""


class ProblemError(EvaluatorError):
    """A Problem's source is invalid. `line` counts from 1; the message says what to do."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(f"line {line}: {message}" if line is not None else message)
        self.line = line


class Rejection(EvaluatorError):
    """End an Evaluation with its Verdict, Stage, a one-line reason for a person and evidence for a Proposer."""

    def __init__(self, verdict: Verdict, stage: Stage, reason: str, **evidence: Any) -> None:
        super().__init__(f"{verdict} in {stage}: {reason}")
        self.verdict = verdict
        self.stage = stage
        self.reason = reason
        self.evidence = evidence


class ComparatorFailed(EvaluatorError):
    """The Baseline or Champion `name` failed while timed: a fault of our set-up or of the reference, never of the
    Candidate."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class UnsupportedCase(EvaluatorError):
    """The reference rejects, or does not survive, sizes or values that no Workload has. `label` names them."""

    def __init__(self, label: str, why: object) -> None:
        super().__init__(f"the reference fails on {label}, which no workload has: {why}")
        self.label = label


class ShortOfMemory(EvaluatorError):
    """The device's memory ran out in a child that runs the reference alone. See `evaluator.stages.memory_shortage`."""


class LockTimeout(EvaluatorError):
    """A device could not be locked in time."""


class CageError(EvaluatorError):
    """The cage could not be built or a child could not be started: a fault of this machine, not of the Candidate."""


class ChildFault(EvaluatorError):
    """A caged child misbehaved. `output` is the tail of what it printed."""

    def __init__(self, message: str, *, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class ChildError(ChildFault):
    """An operation raised inside the child. All texts come from the child, limited in length: claims, not facts.

    `kind` is the exception's class name, `message` its text, `trace` the last frames, a line each: "file:line in
    function: text".
    """

    def __init__(self, kind: str, message: str, trace: str = "", *, output: str = "") -> None:
        super().__init__(f"{kind}: {message}" if message else kind, output=output)
        self.kind = kind
        self.message = message
        self.trace = trace

    @property
    def oom(self) -> bool:
        """Return true if the child ran into its memory limit (Python's MemoryError, or a message of torch's
        allocators)."""
        text = self.message.lower()
        return (
            self.kind in ("MemoryError", "OutOfMemoryError")
            or "can't allocate memory" in text
            or "cannot allocate memory" in text  # the kernel's own words
            or "out of memory" in text
        )

    @property
    def loses_device(self) -> bool:
        """Return true if the child has lost its device.

        After a failed assertion on a GPU nothing runs there any more. Either torch or the driver reports it first.
        """
        lost = ("CUDA_ERROR_ASSERT", "CUDA_ERROR_ILLEGAL", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_MISALIGNED")
        return self.kind == "AcceleratorError" or any(name in self.message for name in lost)


class ChildTimeout(ChildFault):
    """No reply within the time limit."""

    def __init__(self, op: str, timeout_s: float, *, output: str = "") -> None:
        super().__init__(f"{op}: no reply within {timeout_s:g} s", output=output)
        self.op = op
        self.timeout_s = timeout_s


class ChildCrashed(ChildFault):
    """The child's process ended. `signal` or `exit_code` is set if known.

    `over` is "memory" or "processes" if the child was killed for exceeding that limit.
    """

    def __init__(
        self, *, exit_code: int | None = None, signal: int | None = None, over: str = "", output: str = ""
    ) -> None:
        super().__init__(_how_it_ended(exit_code, signal, over), output=output)
        self.exit_code = exit_code
        self.signal = signal
        self.over = over

    @property
    def oom(self) -> bool:
        """Return true if memory was the cause."""
        return self.over == "memory"


class ChildUnstoppable(ChildFault):
    """A process of the child does not stop."""


class ChildResumed(ChildFault):
    """A process of the child ran while it was stopped."""


class ChildProtocolError(ChildFault):
    """The child's bytes were not one well-formed reply to the request."""


def _how_it_ended(exit_code: int | None, number: int | None, over: str) -> str:
    if over:
        return f"ended: it used more {over} than allowed"
    if number is not None:
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            return f"ended by signal {number}"
    if exit_code is not None:
        return f"exited with status {exit_code} instead of replying"
    return "ended without a reply"
