"""Fairness by the seconds that Jobs take.

Revision: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_READY_CONFIRM = "kind = 'confirm' AND state = 'ready'"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("charged_s", sa.Double(), nullable=True))
    op.add_column("shares", sa.Column("cost_s", sa.Double(), nullable=False, server_default="1"))
    op.add_column("shares", sa.Column("kept_by", sa.Text(), nullable=True))
    op.add_column("shares", sa.Column("kept_until", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_jobs_ready_confirm",
        "jobs",
        ["queue", "project_id", "id"],
        sqlite_where=sa.text(_READY_CONFIRM),
        postgresql_where=sa.text(_READY_CONFIRM),
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_ready_confirm", "jobs")
    for name in ("kept_until", "kept_by", "cost_s"):
        op.drop_column("shares", name)
    op.drop_column("jobs", "charged_s")
