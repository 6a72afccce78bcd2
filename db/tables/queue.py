"""The tables of the queue: jobs, shares (its fairness), devices."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Double, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Hash, Id, Word

_ALIVE = "state IN ('ready', 'held', 'claimed')"
ALIVE = text(f"jobs.{_ALIVE}")
"""The condition of an unfinished Job. In these words SQLite uses the partial index of such Jobs: nearly all Jobs
are finished, and its statistics of states cannot show that.
"""


class JobRow(Base):
    """The queue. `state` is ready, held (its Run is paused), claimed, done or dead. `lease` names the present claim.

    An `urgent` one is claimed before the others of its project. `request_id` is the HTTP request behind it, for the
    logs. `charged_s` is the estimate charged to its project,
    until it ends and its real duration is known.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("subject_id", "kind", "ordinal"),
        Index(None, "queue", "state", "project_id", "id"),
        Index(
            "ix_jobs_alive", "state", "queue", "created_at", sqlite_where=text(_ALIVE), postgresql_where=text(_ALIVE)
        ),
        Index(None, "state", "lease_until"),
        Index(None, "run_id", "state"),
        Index(
            "uq_jobs_ready_advance",
            "subject_id",
            unique=True,
            sqlite_where=text("kind = 'advance' AND state IN ('ready', 'held')"),
            postgresql_where=text("kind = 'advance' AND state IN ('ready', 'held')"),
        ),
        Index(
            "ix_jobs_urgent",
            "queue",
            "state",
            "project_id",
            "id",
            sqlite_where=text("urgent = 1"),
            postgresql_where=text("urgent"),
        ),
    )

    id: Mapped[Id] = mapped_column(primary_key=True)
    kind: Mapped[Word]
    queue: Mapped[Word]
    run_id: Mapped[Id | None] = mapped_column(ForeignKey("runs.id"))
    subject_id: Mapped[Id]
    ordinal: Mapped[int]
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    state: Mapped[Word]
    urgent: Mapped[bool] = mapped_column(default=False)
    attempts: Mapped[int] = mapped_column(default=0)
    lease: Mapped[Id | None]
    lease_until: Mapped[datetime | None]
    worker: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str] = mapped_column(Text, default="")
    request_id: Mapped[Id | None]
    nudged_at: Mapped[datetime]
    created_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    done_at: Mapped[datetime | None]
    charged_s: Mapped[float | None] = mapped_column(Double)


class BundleRow(Base):
    """Work given away in a file. `leases` are those of its Jobs, by their ids: only who has them may answer."""

    __tablename__ = "bundles"

    id: Mapped[Id] = mapped_column(primary_key=True)
    device_kind: Mapped[Word]
    leases: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class ShareRow(Base):
    """A project's place in a queue: virtual start and finish of its last service, in seconds over its weight.

    `cost_s` is the recent duration of its Jobs. `kept_by` is the worker that stays free for its first Candidate until
    `kept_until`.
    """

    __tablename__ = "shares"

    queue: Mapped[Word] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    start: Mapped[float] = mapped_column(Double, default=0.0)
    finish: Mapped[float] = mapped_column(Double, default=0.0)
    cost_s: Mapped[float] = mapped_column(Double, default=1.0, server_default="1")
    kept_by: Mapped[str | None] = mapped_column(Text)
    kept_until: Mapped[datetime | None]


class DeviceRow(Base):
    """A device that a worker serves, with the worker's environment."""

    __tablename__ = "devices"

    uuid: Mapped[str] = mapped_column(Text, primary_key=True)
    kind: Mapped[Word] = mapped_column(index=True)
    name: Mapped[str] = mapped_column(Text)
    queue: Mapped[Word]
    facts: Mapped[dict[str, Any]]
    environment: Mapped[dict[str, Any]]
    environment_key: Mapped[Hash]
    isolation: Mapped[list[str]]
    seen_at: Mapped[datetime]
