"""What the command line and the client raise, and the exit code that each ends in.

WarpwrightError             the base; the message is for a person and says what to do
├── BadUsage            2   an option or a file that cannot be used as given
├── Refused             2   the service understood and refused (a reference that does not parse, an unknown id)
├── ServiceFailed       3   the service answered with an error of its own, or with something unreadable
├── Unreachable         3   nobody answers at this address
├── StackFailed         3   the embedded stack did not come up, or went down in between
└── Missing             3   a part that is needed is not installed here
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What every command ends with; docs/guide/exit-codes.md explains them and a test holds it to this list."""

    OK = 0
    NOT_PASSED = 1
    BAD_USAGE = 2
    INTERNAL = 3
    NO_IMPROVEMENT = 4
    INTERRUPTED = 130


class WarpwrightError(Exception):
    """Something went wrong in a way that we can explain."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL


class BadUsage(WarpwrightError):
    exit_code = ExitCode.BAD_USAGE


class Refused(WarpwrightError):
    """The service said no. `status` is the HTTP status, `slug` the last part of the problem type."""

    exit_code = ExitCode.BAD_USAGE

    def __init__(self, message: str, *, status: int, slug: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.slug = slug


class ServiceFailed(WarpwrightError):
    """The service failed, or sent what we cannot read."""


class Unreachable(WarpwrightError):
    """Nobody answers at this address."""


class StackFailed(WarpwrightError):
    """The embedded stack did not come up, or went down."""


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM, which end a command in the same way: children are stopped, temporary data goes."""


class Missing(WarpwrightError):
    """A part that this command needs is not installed."""
