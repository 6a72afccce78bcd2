"""What a Run has open is found without reading what is settled.

Revision: 0023
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

OPEN = sa.text("outcome IS NULL")


def upgrade() -> None:
    op.create_index("ix_proposals_open", "proposals", ["run_id"], sqlite_where=OPEN, postgresql_where=OPEN)


def downgrade() -> None:
    op.drop_index("ix_proposals_open", "proposals")
