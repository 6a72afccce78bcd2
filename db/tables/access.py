"""Keys, browser sessions, the audit log, and the usage of projects.

projects ── api_keys ── sessions
   └── usage
audit_log stands alone: it outlives its subjects, and triggers refuse to change or delete a line of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Double, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Hash, Id, Word


class ApiKeyRow(Base):
    """A key of a project. Only the SHA-256 of the secret is stored; `prefix` finds the row, and a person the key."""

    __tablename__ = "api_keys"
    __table_args__ = (Index(None, "project_id", "id"),)

    id: Mapped[Id] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str] = mapped_column(Text)
    prefix: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Hash]
    scope: Mapped[Word]
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class SessionRow(Base):
    """A browser that exchanged a key for a cookie; it ends with that key. `digest` hashes the cookie's secret."""

    __tablename__ = "sessions"

    id: Mapped[Id] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    key_id: Mapped[Id | None] = mapped_column(ForeignKey("api_keys.id"), index=True)
    digest: Mapped[Hash] = mapped_column(unique=True)
    scope: Mapped[Word]
    actor: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    ended_at: Mapped[datetime | None]


class AuditRow(Base):
    """One operation with its actor, subject, time and address. Append-only."""

    __tablename__ = "audit_log"
    __table_args__ = (Index(None, "project_id", "id"),)

    id: Mapped[Id] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    project_id: Mapped[Id]
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[Word]
    subject: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    detail: Mapped[dict[str, Any]]


class UsageRow(Base):
    """A project's charges of one month (UTC), added in the transaction that settles the work."""

    __tablename__ = "usage"

    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    month: Mapped[str] = mapped_column(String(7), primary_key=True)
    device_s: Mapped[float] = mapped_column(Double, default=0.0)
    usd: Mapped[float] = mapped_column(Double, default=0.0)
    tokens: Mapped[int] = mapped_column(BigInteger, default=0)
