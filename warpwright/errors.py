"""The errors of the command line and the client, and their exit codes.

WarpwrightError             the base; the message tells a person what to do
├── BadUsage            2   an option or a file cannot be used as given
├── Refused             2   the service refused the request (a reference that does not parse, an unknown id)
├── ServiceFailed       3   the service failed, or its answer could not be read
├── Unreachable         3   no service answers at this address
├── StackFailed         3   the embedded stack did not start, or it stopped
└── Missing             3   a required part is not installed here
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit codes of all commands. docs/guide/exit-codes.md explains them; a test compares it with this list."""

    OK = 0
    NOT_PASSED = 1
    BAD_USAGE = 2
    INTERNAL = 3
    NO_IMPROVEMENT = 4
    INTERRUPTED = 130


class WarpwrightError(Exception):
    """An error with a message for a person."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL


class BadUsage(WarpwrightError):
    exit_code = ExitCode.BAD_USAGE


class Refused(WarpwrightError):
    """The service refused. `status` is the HTTP status, `slug` the last part of the problem type."""

    exit_code = ExitCode.BAD_USAGE

    def __init__(self, message: str, *, status: int, slug: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.slug = slug


class ServiceFailed(WarpwrightError):
    """The service failed, or its answer could not be read."""


class Unreachable(WarpwrightError):
    """No service answers at this address."""


class StackFailed(WarpwrightError):
    """The embedded stack did not start, or it stopped."""


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. Both stop the children and remove temporary data."""


class Missing(WarpwrightError):
    """A part that this command requires is not installed."""
