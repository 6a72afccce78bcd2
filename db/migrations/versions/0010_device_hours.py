"""How busy every device was, by the hour.

Revision: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "device_hours",
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("busy_s", sa.Double(), nullable=False),
        sa.Column("evaluations", sa.Integer(), nullable=False),
        sa.Column("observed", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("uuid", "hour", name=op.f("pk_device_hours")),
    )


def downgrade() -> None:
    op.drop_table("device_hours")
