"""Prompts and replies in parts that are stored once a Run.

Revision: 0011
"""

from __future__ import annotations

import hashlib
import json
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    texts = op.create_table(
        "texts",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_texts_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "hash", name=op.f("pk_texts")),
    )
    bind = op.get_bind()
    for name in ("prompt", "reply"):
        op.add_column("proposals", sa.Column(f"{name}_parts", sa.JSON(), nullable=False, server_default="[]"))
        rows = bind.execute(sa.text(f"SELECT id, run_id, {name} FROM proposals WHERE {name} <> ''")).all()
        for id, run_id, said in rows:
            # A whole text as one part, under a name that no other has.
            key = hashlib.sha256(f"moved {name} {id}".encode()).hexdigest()
            bind.execute(texts.insert().values(run_id=run_id, hash=key, data=zlib.compress(said.encode())))
            change = sa.text(f"UPDATE proposals SET {name}_parts = :parts WHERE id = :id")
            bind.execute(change, {"parts": json.dumps([key]), "id": id})
        op.drop_column("proposals", name)


def downgrade() -> None:
    for name in ("prompt", "reply"):
        op.add_column("proposals", sa.Column(name, sa.Text(), nullable=False, server_default=""))
        op.drop_column("proposals", f"{name}_parts")
    op.drop_table("texts")
