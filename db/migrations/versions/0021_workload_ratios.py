"""How fast each Candidate is on each Workload, as rows; of what was judged before, nothing is known here.

Revision: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workload_ratios",
        sa.Column("candidate_id", sa.String(40), sa.ForeignKey("candidates.id"), nullable=False),
        sa.Column("workload", sa.String(100), nullable=False),
        sa.Column("run_id", sa.String(40), sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("combined", sa.Boolean(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("candidate_id", "workload"),
    )
    op.create_index("ix_workload_ratios_fastest", "workload_ratios", ["run_id", "workload", "combined", "speedup"])


def downgrade() -> None:
    op.drop_table("workload_ratios")
