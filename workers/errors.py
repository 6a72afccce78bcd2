"""The errors of workers.

WorkerError
├── StepFailed       a step failed through our fault: it is retried
│   └── JudgeFault   the judge's process died, hung, or sent an invalid answer
├── DestinationRefused   a webhook's destination is not allowed: it is not retried
└── StartFailed      this worker cannot start; the message gives the remedy
"""

from __future__ import annotations


class WorkerError(Exception):
    """Base of this room's errors."""


class StepFailed(WorkerError):
    """A step failed through our fault. It is retried."""


class JudgeFault(StepFailed):
    """The judge's process died, hung, or sent an invalid answer."""


class DestinationRefused(WorkerError):
    """A webhook's destination is not allowed. It is not retried."""


class StartFailed(WorkerError):
    """This worker cannot start. The message gives the remedy."""
