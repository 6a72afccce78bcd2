"""The archive keeps one elite of each design, and nothing is judged twice in a Run.

Revision: 0024
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_SAME = "o.run_id = tallies.run_id AND o.stage = tallies.stage AND o.verdict = tallies.verdict AND o.kind = 'again'"
_FASTER = "b.speedup > candidates.speedup OR (b.speedup = candidates.speedup AND b.number < candidates.number)"


def upgrade() -> None:
    _one_kind_of_judgement()
    op.drop_index("ix_candidates_cell", "candidates")
    op.drop_index(op.f("ix_candidates_run_id_elite"), "candidates")
    op.drop_column("candidates", "times_judged")
    op.execute(
        "UPDATE candidates SET elite = verdict IS NOT NULL AND verdict = 'PASSED' AND speedup IS NOT NULL AND"
        " NOT EXISTS (SELECT 1 FROM candidates b WHERE b.run_id = candidates.run_id AND b.family = candidates.family"
        f" AND b.verdict = 'PASSED' AND ({_FASTER}))"
    )
    op.create_index("ix_candidates_elite", "candidates", ["run_id", "elite", "speedup"])


def _one_kind_of_judgement() -> None:
    op.execute(
        f"UPDATE tallies SET number = number + (SELECT o.number FROM tallies o WHERE {_SAME}),"
        f" device_s = device_s + (SELECT o.device_s FROM tallies o WHERE {_SAME})"
        f" WHERE kind = 'first' AND EXISTS (SELECT 1 FROM tallies o WHERE {_SAME})"
    )
    op.execute(
        "DELETE FROM tallies WHERE kind = 'again' AND EXISTS (SELECT 1 FROM tallies o WHERE"
        " o.run_id = tallies.run_id AND o.stage = tallies.stage AND o.verdict = tallies.verdict AND o.kind = 'first')"
    )
    op.execute("UPDATE tallies SET kind = 'judge' WHERE kind IN ('first', 'again')")


def downgrade() -> None:
    op.drop_index("ix_candidates_elite", "candidates")
    op.add_column("candidates", sa.Column("times_judged", sa.Integer(), nullable=False, server_default="1"))
    op.create_index(op.f("ix_candidates_run_id_elite"), "candidates", ["run_id", "elite"])
    op.create_index("ix_candidates_cell", "candidates", ["run_id", "island", "niche", "speedup"])
    op.execute("UPDATE tallies SET kind = 'first' WHERE kind = 'judge'")
