"""Runs migrations on the connection that `db.engine.migrate` hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

import db.counters
import db.history
<<<<<<< HEAD
import db.tables
import db.texts  # noqa: F401
=======
import db.hooks
import db.tables  # noqa: F401  (the tables register themselves)
>>>>>>> bef3868 (Webhooks: a signed POST when a Run has ended, retried, pinned to a public address, never redirected)
from db.base import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=False,
    compare_type=True,
)
context.run_migrations()
