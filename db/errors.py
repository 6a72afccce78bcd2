"""The errors of this room.

DbError
├── NotFound          no such row, or it is another project's
├── Conflict          the row is in a state that does not allow this
└── SchemaMismatch    the database is not at the revision that this code needs
"""

from __future__ import annotations


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


class SchemaMismatch(DbError):
    """The database is not at the revision that this code needs: run `python -m db migrate`."""
