"""What open Proposals hold of their Run's budget, and arms that found too little of it.

Revision: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("proposals", sa.Column("held_tokens", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("proposals", sa.Column("held_usd", sa.Double(), nullable=False, server_default="0"))
    op.add_column("arm_stats", sa.Column("broke", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("arm_stats", "broke")
    op.drop_column("proposals", "held_usd")
    op.drop_column("proposals", "held_tokens")
