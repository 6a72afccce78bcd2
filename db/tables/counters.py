"""Counters of the whole installation, updated in the transactions they count, so that every process reads the same.

A counter is a name with labels, in a few shards, so that workers do not wait for each other's rows. A transaction
writes its counts at its end, in one statement and always in the same order: no deadlocks.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import Double, Text, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Mapped, Session, mapped_column

from db.tables.base import Base, Word

SHARDS = 16
BUCKETS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_PENDING = "warpwright_counts"

Labels = tuple[str, ...]


class CounterRow(Base):
    """`labels` is a JSON list. A counter's value is the sum over its shards."""

    __tablename__ = "counters"

    name: Mapped[Word] = mapped_column(primary_key=True)
    labels: Mapped[str] = mapped_column(Text, primary_key=True)
    shard: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float] = mapped_column(Double)


def count(s: Session, name: str, *labels: str, by: float = 1.0) -> None:
    """Add to a counter if this write transaction commits. Labels take few values, never a tenant's free text."""
    pending: dict[tuple[str, Labels], float] = s.info.setdefault(_PENDING, defaultdict(float))
    pending[name, labels] += by


def observe(s: Session, name: str, seconds: float, *labels: str) -> None:
    """Add to a histogram: its bucket and its sum."""
    bucket = bisect_left(BUCKETS_S, seconds)
    count(s, f"{name}_bucket", *labels, str(BUCKETS_S[bucket]) if bucket < len(BUCKETS_S) else "+Inf")
    count(s, f"{name}_sum", *labels, by=seconds)


def flush(s: Session) -> None:
    """Write the counts; `write_session` calls it before the commit."""
    pending: dict[tuple[str, Labels], float] = s.info.pop(_PENDING, {})
    if not pending:
        return
    insert = postgresql.insert if s.get_bind().dialect.name == "postgresql" else sqlite.insert
    shard = os.getpid() % SHARDS
    rows = [
        {"name": name, "labels": json.dumps(labels), "shard": shard, "value": value}
        for (name, labels), value in sorted(pending.items())
    ]
    statement = insert(CounterRow).values(rows)
    s.execute(
        statement.on_conflict_do_update(
            index_elements=["name", "labels", "shard"],
            set_={"value": CounterRow.value + statement.excluded.value},
        )
    )


def totals(s: Session) -> Mapping[str, Mapping[Labels, float]]:
    """Return every counter by name and labels: a few hundred rows at any age of the database."""
    query = select(CounterRow.name, CounterRow.labels, func.sum(CounterRow.value)).group_by(
        CounterRow.name, CounterRow.labels
    )
    found: dict[str, dict[Labels, float]] = defaultdict(dict)
    for name, labels, value in s.execute(query):
        found[name][tuple(json.loads(labels))] = value
    return found
