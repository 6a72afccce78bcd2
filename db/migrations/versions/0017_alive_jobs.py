"""Jobs that are not over have an index of their own.

Revision: 0017
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_ALIVE = sa.text("state IN ('ready', 'held', 'claimed')")


def upgrade() -> None:
    op.create_index(
        "ix_jobs_alive",
        "jobs",
        ["state", "queue", "created_at"],
        sqlite_where=_ALIVE,
        postgresql_where=_ALIVE,
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_alive", "jobs")
