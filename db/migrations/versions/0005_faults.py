"""The causes of model answers of no use, and their rows.

Revision: 0005, after 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WORD = sa.String(100)


def upgrade() -> None:
    op.add_column("proposals", sa.Column("fault", WORD, nullable=True))
    op.add_column("proposals", sa.Column("repeats", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("arm_stats", sa.Column("fault", WORD, nullable=True))
    op.add_column("arm_stats", sa.Column("faults_in_row", sa.Integer(), nullable=False, server_default="0"))
