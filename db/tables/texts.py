"""Prompts and replies in parts, each stored once a Run: reference, guide and parents recur in every prompt."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from sqlalchemy import ForeignKey, LargeBinary, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Mapped, Session, mapped_column

from db.tables.base import Base, Hash, Id
from evaluator.types import content_hash

_HEADING = re.compile(r"(?m)^(?=## |\[system\]|\[user\]|\[assistant\])")


class TextRow(Base):
    """One part of a text, deflated."""

    __tablename__ = "texts"

    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    hash: Mapped[Hash] = mapped_column(primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


def store_text(s: Session, run_id: str, text: str) -> list[str]:
    """Store a text, cut at its headings, and return the hashes of its parts, in order."""
    cut = [(content_hash("text", part), part) for part in _HEADING.split(text) if part]
    if cut:
        insert = postgresql.insert if s.get_bind().dialect.name == "postgresql" else sqlite.insert
        rows = [
            {"run_id": run_id, "hash": key, "data": zlib.compress(part.encode(), 6)} for key, part in dict(cut).items()
        ]
        s.execute(insert(TextRow).on_conflict_do_nothing(), rows)
    return [key for key, _ in cut]


def load_text(s: Session, run_id: str, hashes: Sequence[str]) -> str:
    """Join these parts to a text."""
    rows = s.execute(select(TextRow.hash, TextRow.data).where(TextRow.run_id == run_id, TextRow.hash.in_(hashes)))
    parts = {row.hash: zlib.decompress(row.data).decode() for row in rows}
    return "".join(parts[key] for key in hashes)
