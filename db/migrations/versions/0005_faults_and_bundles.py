"""The causes of model answers of no use, and their rows; bundles of work.

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
    _add_faults()
    _create_bundles()


def _add_faults() -> None:
    op.add_column("proposals", sa.Column("fault", WORD, nullable=True))
    op.add_column("proposals", sa.Column("repeats", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("arm_stats", sa.Column("fault", WORD, nullable=True))
    op.add_column("arm_stats", sa.Column("faults_in_row", sa.Integer(), nullable=False, server_default="0"))


def _create_bundles() -> None:
    op.create_table(
        "bundles",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("leases", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
