"""Lists of Evaluations and Runs are ranges of an index, with their filters too.

Revision: 0013
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index(op.f("ix_evaluations_run_id_state"), "evaluations")
    op.create_index(op.f("ix_evaluations_run_id_id"), "evaluations", ["run_id", "id"])
    op.create_index(op.f("ix_evaluations_run_id_state_id"), "evaluations", ["run_id", "state", "id"])
    op.create_index(op.f("ix_evaluations_run_id_verdict_id"), "evaluations", ["run_id", "verdict", "id"])
    op.create_index(op.f("ix_runs_project_id_kind_id"), "runs", ["project_id", "kind", "id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_runs_project_id_kind_id"), "runs")
    op.drop_index(op.f("ix_evaluations_run_id_verdict_id"), "evaluations")
    op.drop_index(op.f("ix_evaluations_run_id_state_id"), "evaluations")
    op.drop_index(op.f("ix_evaluations_run_id_id"), "evaluations")
    op.create_index(op.f("ix_evaluations_run_id_state"), "evaluations", ["run_id", "state"])
