"""The Run that a Run was forked from.

Revision: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("forked_from", sa.String(length=40), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "forked_from")
