"""How near a Champion comes to its Roofline floor.

Revision: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("champions", sa.Column("roofline", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("champions", "roofline")
