"""What Runs have taught, for Runs to come.

Revision: 0022
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lessons",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("problem_id", sa.String(40), sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("run_id", sa.String(40), sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("device_kind", sa.String(100), nullable=False),
        sa.Column("device_name", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sizes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_lessons_device_kind_device_name_id", "lessons", ["device_kind", "device_name", "id"])
    op.create_index("ix_lessons_run_id", "lessons", ["run_id"])


def downgrade() -> None:
    op.drop_table("lessons")
