"""The errors of workers.

WorkerError
├── StepFailed       a step could not be done, and it is our fault: it is tried again
│   └── JudgeFault   the judge's process died, hung, or said something that is not an answer
├── Refused          a webhook goes where it may not: it is not tried again
└── StartFailed      this worker cannot work at all; the message says what to do
"""

from __future__ import annotations


class WorkerError(Exception):
    """Base of what this room raises."""


class StepFailed(WorkerError):
    """A step could not be done, and it is our fault: it is tried again."""


class JudgeFault(StepFailed):
    """The judge's process died, hung, or said something that is not an answer."""


class DestinationRefused(WorkerError):
    """A webhook goes where it may not: it is not tried again."""


class StartFailed(WorkerError):
    """This worker cannot work at all; the message says what to do."""
