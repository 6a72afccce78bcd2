"""Problems, devices, and the admissions and baseline reports of a Problem on a device kind.

Revision: 0002, after 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.String(40)
HASH = sa.String(64)
WORD = sa.String(100)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_problems()
    _create_devices()
    _create_device_hours()
    _create_workers()
    _create_admissions()
    _create_baselines()


def _create_problems() -> None:
    op.create_table(
        "problems",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("hash", HASH, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("family", WORD, nullable=False, server_default="other"),
        sa.Column("public", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", TIME, nullable=False),
        sa.UniqueConstraint("project_id", "hash"),
    )
    op.create_index("ix_problems_hash", "problems", ["hash"])
    op.create_index(
        "ix_problems_public",
        "problems",
        ["hash"],
        sqlite_where=sa.text("public = 1"),
        postgresql_where=sa.text("public"),
    )


def _create_devices() -> None:
    op.create_table(
        "devices",
        sa.Column("uuid", sa.Text(), primary_key=True),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queue", WORD, nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.Column("environment_key", HASH, nullable=False),
        sa.Column("isolation", sa.JSON(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
    )
    op.create_index("ix_devices_kind", "devices", ["kind"])


def _create_device_hours() -> None:
    op.create_table(
        "device_hours",
        sa.Column("uuid", sa.Text(), primary_key=True),
        sa.Column("hour", TIME, primary_key=True),
        sa.Column("busy_s", sa.Double(), nullable=False),
        sa.Column("evaluations", sa.Integer(), nullable=False),
        sa.Column("observed", sa.JSON(), nullable=True),
    )


def _create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("queue", WORD, nullable=False),
        sa.Column("device_uuid", sa.Text(), nullable=True),
        sa.Column("observed", sa.JSON(), nullable=True),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
    )


def _create_admissions() -> None:
    op.create_table(
        "admissions",
        sa.Column("id", ID, primary_key=True),
        sa.Column("problem_id", ID, sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("environment_key", HASH, nullable=True),
        sa.Column("body", sa.JSON(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("settled_at", TIME, nullable=True),
    )
    op.create_index("ix_admissions_problem_id_device_kind_state", "admissions", ["problem_id", "device_kind", "state"])


def _create_baselines() -> None:
    op.create_table(
        "baselines",
        sa.Column("id", ID, primary_key=True),
        sa.Column("problem_id", ID, sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("device_name", sa.Text(), nullable=True),
        sa.Column("environment_key", HASH, nullable=True),
        sa.Column("body", sa.JSON(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("settled_at", TIME, nullable=True),
    )
    op.create_index("ix_baselines_problem_id_device_kind_state", "baselines", ["problem_id", "device_kind", "state"])
