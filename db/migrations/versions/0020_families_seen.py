"""What the inner search reads of a family lies in one index: Configurations with their speedups and verdicts.

Revision: 0020
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_OLD = ["run_id", "family", "configuration_key"]


def upgrade() -> None:
    op.drop_index("ix_candidates_run_id_family_configuration_key", "candidates")
    op.create_index("ix_candidates_family", "candidates", [*_OLD, "speedup", "verdict"])


def downgrade() -> None:
    op.drop_index("ix_candidates_family", "candidates")
    op.create_index("ix_candidates_run_id_family_configuration_key", "candidates", _OLD)
