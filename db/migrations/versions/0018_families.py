"""What kind of operation each Problem is.

Revision: 0018
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from evaluator.screening.family import family_of

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

BATCH = 200


def upgrade() -> None:
    op.add_column("problems", sa.Column("family", sa.String(100), nullable=False, server_default="other"))
    bind = op.get_bind()
    problems = sa.table("problems", sa.column("id"), sa.column("body"), sa.column("family"))
    after = ""
    while rows := bind.execute(
        sa.select(problems.c.id, problems.c.body).where(problems.c.id > after).order_by(problems.c.id).limit(BATCH)
    ).all():
        for row in rows:
            body = json.loads(row.body) if isinstance(row.body, str) else row.body
            family = str(family_of(body["source"]))
            bind.execute(sa.update(problems).where(problems.c.id == row.id).values(family=family))
        after = rows[-1].id


def downgrade() -> None:
    op.drop_column("problems", "family")
