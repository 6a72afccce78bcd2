"""The errors of this room.

DbError
├── NotFound          no such row, or it is another project's
├── Conflict          the row is in a state that does not allow this
├── QuotaExceeded     the project has used up what it may use
└── SchemaMismatch    the database is not at the revision that this code needs
"""

from __future__ import annotations

from datetime import datetime


class DbError(Exception):
    """Anything that this room raises on purpose."""


class NotFound(DbError):
    """No such row in this project."""

    def __init__(self, noun: str, id: str) -> None:
        super().__init__(f"no {noun} {id!r}")
        self.noun = noun
        self.id = id


class Conflict(DbError):
    """The row is in a state that does not allow what was asked; the message says which."""


class QuotaExceeded(DbError):
    """A project has used up a quota. `resets_at` says when time alone will help, None where something has to end."""

    def __init__(self, quota: str, *, used: float, allowed: float, resets_at: datetime | None) -> None:
        super().__init__(f"the project's quota {quota} is used up: {used:g} of {allowed:g}")
        self.quota = quota
        self.used = used
        self.allowed = allowed
        self.resets_at = resets_at


class SchemaMismatch(DbError):
    """The database is not at the revision that this code needs: run `python -m db migrate`."""
