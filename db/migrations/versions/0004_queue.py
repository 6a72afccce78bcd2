"""The job queue, bundles of its work, fair shares of projects, webhooks, counters for metrics.

Revision: 0004, after 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.String(40)
WORD = sa.String(100)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_jobs()
    _create_bundles()
    _create_shares()
    _create_webhooks()
    _create_counters()


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", ID, primary_key=True),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("queue", WORD, nullable=False),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=True),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("urgent", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", ID, nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("request_id", ID, nullable=True),
        sa.Column("nudged_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("claimed_at", TIME, nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.Column("charged_s", sa.Double(), nullable=True),
        sa.UniqueConstraint("subject_id", "kind", "ordinal"),
    )
    op.create_index("ix_jobs_queue_state_project_id_id", "jobs", ["queue", "state", "project_id", "id"])
    op.create_index("ix_jobs_run_id_state", "jobs", ["run_id", "state"])
    op.create_index("ix_jobs_state_lease_until", "jobs", ["state", "lease_until"])
    op.create_index(
        "uq_jobs_ready_advance",
        "jobs",
        ["subject_id"],
        unique=True,
        sqlite_where=sa.text("kind = 'advance' AND state IN ('ready', 'held')"),
        postgresql_where=sa.text("kind = 'advance' AND state IN ('ready', 'held')"),
    )
    op.create_index(
        "ix_jobs_urgent",
        "jobs",
        ["queue", "state", "project_id", "id"],
        sqlite_where=sa.text("urgent = 1"),
        postgresql_where=sa.text("urgent"),
    )
    op.create_index(
        "ix_jobs_alive",
        "jobs",
        ["state", "queue", "created_at"],
        sqlite_where=sa.text("state IN ('ready', 'held', 'claimed')"),
        postgresql_where=sa.text("state IN ('ready', 'held', 'claimed')"),
    )


def _create_bundles() -> None:
    op.create_table(
        "bundles",
        sa.Column("id", ID, primary_key=True),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("leases", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
    )


def _create_shares() -> None:
    op.create_table(
        "shares",
        sa.Column("queue", WORD, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("start", sa.Double(), nullable=False),
        sa.Column("finish", sa.Double(), nullable=False),
        sa.Column("cost_s", sa.Double(), nullable=False, server_default="1"),
        sa.Column("kept_by", sa.Text(), nullable=True),
        sa.Column("kept_until", TIME, nullable=True),
    )


def _create_webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("deliveries", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("settled_at", TIME, nullable=True),
    )


def _create_counters() -> None:
    op.create_table(
        "counters",
        sa.Column("name", WORD, primary_key=True),
        sa.Column("labels", sa.Text(), primary_key=True),
        sa.Column("shard", sa.Integer(), primary_key=True),
        sa.Column("value", sa.Double(), nullable=False),
    )
