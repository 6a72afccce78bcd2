"""What a program may see: NotPortable is told as an OptimizeWarning, since the original still works."""

from __future__ import annotations

from warpwright.errors import BadUsage


class NotPortable(BadUsage):
    """A function or module cannot be written as a self-contained problem file; the message names the reason."""


class OptimizeWarning(UserWarning):
    """The original was returned instead of a faster one; the message says why."""
