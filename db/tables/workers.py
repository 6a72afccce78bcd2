"""Workers, and their readings of their devices."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Word


class WorkerRow(Base):
    """A worker process, busy or not. `observed` is its last reading of its device: clocks, temperature, utilisation."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    queue: Mapped[Word]
    device_uuid: Mapped[str | None] = mapped_column(Text)
    observed: Mapped[dict[str, Any] | None]
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
