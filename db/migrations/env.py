"""Run migrations on the connection that `db.engine.migrate` passes, inside its transaction."""

from __future__ import annotations

from alembic import context

from db.tables.base import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=False,
    compare_type=True,
)
context.run_migrations()
