"""The table of webhooks: the address to call at the end of a Run, and the outcome."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Id, Word


class WebhookRow(Base):
    """`state` is waiting (for the end of the Run), ready, delivered or failed. `secret` is never returned."""

    __tablename__ = "webhooks"

    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    secret: Mapped[str] = mapped_column(Text)
    state: Mapped[Word] = mapped_column(default="waiting")
    deliveries: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    status: Mapped[int | None]
    error: Mapped[str] = mapped_column(Text, default="")
    settled_at: Mapped[datetime | None]
