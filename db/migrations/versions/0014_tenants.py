"""Quotas of projects and what they used, and problems that everybody may see.

Revision: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_LIMITS: tuple[tuple[str, sa.Integer | sa.Double[float]], ...] = (
    ("max_live_runs", sa.Integer()),
    ("max_runs_per_day", sa.Integer()),
    ("max_device_s_per_month", sa.Double()),
    ("max_usd_per_month", sa.Double()),
)


def upgrade() -> None:
    op.add_column("projects", sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True))
    for name, kind in _LIMITS:
        op.add_column("projects", sa.Column(name, kind, nullable=True))
    op.add_column("problems", sa.Column("public", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(
        op.f("ix_problems_public"),
        "problems",
        ["hash"],
        sqlite_where=sa.text("public = 1"),
        postgresql_where=sa.text("public"),
    )
    op.create_table(
        "usage",
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_usage_project_id")),
        sa.PrimaryKeyConstraint("project_id", "month", name=op.f("pk_usage")),
    )


def downgrade() -> None:
    op.drop_table("usage")
    op.drop_index(op.f("ix_problems_public"), "problems")
    op.drop_column("problems", "public")
    for name, _ in reversed(_LIMITS):
        op.drop_column("projects", name)
    op.drop_column("projects", "archived_at")
