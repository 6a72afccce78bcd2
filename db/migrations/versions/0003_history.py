"""Milestones and tallies; Champions are found by Run and by Problem.

Revision: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "milestones",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("candidate_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("speedup_low", sa.Double(), nullable=False),
        sa.Column("speedup_high", sa.Double(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("evaluations", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_milestones_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "ordinal", name=op.f("pk_milestones")),
    )
    op.create_table(
        "tallies",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("stage", sa.String(length=100), nullable=False),
        sa.Column("verdict", sa.String(length=100), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_tallies_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "kind", "stage", "verdict", name=op.f("pk_tallies")),
    )
    with op.batch_alter_table("champions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_champions_run_id"), ["run_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_champions_problem_id_id"), ["problem_id", "id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("champions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_champions_problem_id_id"))
        batch_op.drop_index(batch_op.f("ix_champions_run_id"))
    op.drop_table("tallies")
    op.drop_table("milestones")
