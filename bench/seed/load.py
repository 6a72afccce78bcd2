"""Load rows in bulk into both databases: COPY or executemany, then INSERT ... SELECT for derived rows.

Secondary indexes are dropped before and made again after; foreign keys are not checked meanwhile. Columns that are not
named get the default of their table, so that a new column with one needs no change here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from sqlalchemy import Column, Engine, Table

from db.tables.base import Base

Row = Sequence[Any]


class SeedError(Exception):
    """The tables have changed in a way that the seeder does not know."""


class Loader:
    """One connection to an empty, migrated database."""

    def __init__(self, engine: Engine) -> None:
        self._pooled = engine.raw_connection()
        self.postgres = engine.dialect.name == "postgresql"
        self._raw: Any = self._pooled.driver_connection
        if self.postgres:
            assert isinstance(self._raw, psycopg.Connection)
            self._raw.rollback()
            self._raw.autocommit = True
            self._raw.execute("SET session_replication_role = replica")
            self._raw.execute("SET synchronous_commit = off")
            self._raw.execute("SET maintenance_work_mem = '1GB'")
        else:
            assert isinstance(self._raw, sqlite3.Connection)
            self._raw.execute("PRAGMA foreign_keys=OFF")
            self._raw.execute("PRAGMA synchronous=OFF")
        self._indexes = {
            (index.name or "", table.name): self._definition(index.name or "")
            for table in Base.metadata.sorted_tables
            for index in table.indexes
        }

    def _definition(self, name: str) -> str:
        query = (
            "SELECT indexdef FROM pg_indexes WHERE indexname = %s"
            if self.postgres
            else "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?"
        )
        found = self._raw.execute(query, (name,)).fetchone()
        if found is None:
            raise SeedError(f"the database has no index {name}: migrate it first")
        return str(found[0])

    def drop_indexes(self) -> None:
        """Drop the indexes: rows are loaded without them, and they are made again at the end."""
        for name, _ in self._indexes:
            self.run(f'DROP INDEX "{name}"')

    def finish(self) -> int:
        """Make the indexes again, gather statistics, and disconnect; return the size of the database in bytes."""
        for definition in self._indexes.values():
            self.run(definition)
        self.run("VACUUM ANALYZE" if self.postgres else "ANALYZE")
        if self.postgres:
            self.run("CHECKPOINT")
        else:
            self.run("PRAGMA wal_checkpoint(TRUNCATE)")
        size = self._bytes_used()
        self._pooled.detach()
        self._raw.close()
        return size

    def run(self, statement: str, values: Mapping[str, object] | None = None) -> None:
        """Run one statement; `:name` is a value."""
        if self.postgres:
            statement = statement.replace("%", "%%") if values else statement
            for name in values or ():
                statement = statement.replace(f":{name}:", f"%({name})s")
            self._raw.execute(statement, values)
        else:
            for name in values or ():
                statement = statement.replace(f":{name}:", f":{name}")
            self._raw.execute(statement, values or {})

    def add(self, table_name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Append rows: JSON as text, moments as `moment` gives them."""
        table = Base.metadata.tables[table_name]
        rest = _defaults(table, columns)
        names = ", ".join(f'"{name}"' for name in (*columns, *rest))
        tail = tuple(rest.values())
        if self.postgres:
            with self._raw.cursor().copy(f'COPY "{table_name}" ({names}) FROM STDIN') as copy:
                for row in rows:
                    copy.write_row((*row, *tail))
            return
        marks = ", ".join("?" * (len(columns) + len(rest)))
        self._raw.execute("BEGIN")
        self._raw.executemany(f'INSERT INTO "{table_name}" ({names}) VALUES ({marks})', ((*row, *tail) for row in rows))
        self._raw.execute("COMMIT")

    def derive(
        self, table_name: str, columns: Mapping[str, str], source: str, values: Mapping[str, object] | None = None
    ) -> None:
        """INSERT INTO table SELECT the columns' expressions FROM source."""
        table = Base.metadata.tables[table_name]
        rest = {name: _literal(value) for name, value in _defaults(table, list(columns)).items()}
        expressions = {name: self._json(table.columns[name], text) for name, text in {**columns, **rest}.items()}
        names = ", ".join(f'"{name}"' for name in expressions)
        self.run(f'INSERT INTO "{table_name}" ({names}) SELECT {", ".join(expressions.values())} FROM {source}', values)

    def _json(self, column: Column[Any], expression: str) -> str:
        return (
            f"CAST({expression} AS JSON)" if self.postgres and column.type.__class__.__name__ == "JSON" else expression
        )

    def moment(self, ms: int) -> str:
        """Convert milliseconds since 1970 to a moment of this database."""
        text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="microseconds")
        return text if self.postgres else text.removesuffix("+00:00")

    def _bytes_used(self) -> int:
        query = (
            "SELECT pg_database_size(current_database())"
            if self.postgres
            else "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        )
        return int(self._raw.execute(query).fetchone()[0])


def _defaults(table: Table, given: Sequence[str]) -> dict[str, Any]:
    """Return the values of the columns that were not given. Raise SeedError if one has no default."""
    unknown = [name for name in given if name not in table.columns]
    if unknown:
        raise SeedError(f"{table.name} has no column {unknown[0]}: teach bench/seed what became of it")
    found: dict[str, Any] = {}
    for column in table.columns:
        if column.name in given or column.nullable:
            continue
        if column.default is not None and column.default.is_scalar:
            found[column.name] = column.default.arg  # type: ignore[attr-defined]
        elif column.server_default is None:
            raise SeedError(f"{table.name}.{column.name} has no default: teach bench/seed what to write there")
    return found


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"
