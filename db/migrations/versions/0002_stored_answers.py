"""Answers to requests with an Idempotency-Key.

Revision: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "stored_answers",
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_stored_answers_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", "key", name=op.f("pk_stored_answers")),
    )
    op.create_index(op.f("ix_stored_answers_created_at"), "stored_answers", ["created_at"], unique=False)


def downgrade() -> None:
    op.drop_table("stored_answers")
