"""Counters for metrics, the request behind a Job, and Champions by their Candidate.

Revision: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", "shard", name=op.f("pk_counters")),
    )
    op.add_column("jobs", sa.Column("request_id", sa.String(length=40), nullable=True))
    op.create_index(op.f("ix_champions_candidate_id"), "champions", ["candidate_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_champions_candidate_id"), "champions")
    op.drop_column("jobs", "request_id")
    op.drop_table("counters")
