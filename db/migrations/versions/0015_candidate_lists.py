"""Lists of Candidates are picked from an index alone, filters included.

Revision: 0015
"""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

FILTERS = ["verdict", "language", "confirmed", "island", "proposer", "model"]


def upgrade() -> None:
    op.create_index("ix_candidates_newest", "candidates", ["run_id", "number", *FILTERS])
    op.create_index("ix_candidates_fastest", "candidates", ["run_id", "speedup", "number", *FILTERS])
    op.drop_index(op.f("ix_candidates_run_id_number"), "candidates")
    op.drop_index("ix_candidates_speedup", "candidates")


def downgrade() -> None:
    op.create_index("ix_candidates_speedup", "candidates", ["run_id", "speedup"])
    op.create_index(op.f("ix_candidates_run_id_number"), "candidates", ["run_id", "number"])
    op.drop_index("ix_candidates_fastest", "candidates")
    op.drop_index("ix_candidates_newest", "candidates")
