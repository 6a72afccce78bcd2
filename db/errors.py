"""The errors of this room.

DbError
├── NotFound          no such row, or it belongs to another project
├── Conflict          the row is in a state that does not allow this
├── QuotaExceeded     the project has used up a quota
├── SchemaMismatch    the database is not at the revision that this code needs
└── WrongAddress      the URL names no database that can be used here
"""

from __future__ import annotations

from datetime import datetime


class DbError(Exception):
    """The base of every error that this room raises on purpose."""


class NotFound(DbError):
    """No such row in this project."""

    def __init__(self, noun: str, id: str) -> None:
        super().__init__(f"no {noun} {id!r}")
        self.noun = noun
        self.id = id


class Conflict(DbError):
    """The row's state does not allow the change; the message names the state."""


class QuotaExceeded(DbError):
    """A project has used up a quota. `resets_at` is when it renews; None where a Run has to end first."""

    def __init__(self, quota: str, *, used: float, allowed: float, resets_at: datetime | None) -> None:
        super().__init__(f"the project's quota {quota} is used up: {used:g} of {allowed:g}")
        self.quota = quota
        self.used = used
        self.allowed = allowed
        self.resets_at = resets_at


class SchemaMismatch(DbError):
    """The database is not at the revision that this code needs: run `python -m db migrate`."""


class WrongAddress(DbError):
    """The URL of the database cannot be used; the message says what to write."""
