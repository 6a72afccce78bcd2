"""What a Run is for.

Revision: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("kind", sa.String(length=100), nullable=False, server_default="optimise"))


def downgrade() -> None:
    op.drop_column("runs", "kind")
