"""Projects, their keys and sessions, the audit log, stored answers.

Revision: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.String(40)
HASH = sa.String(64)
WORD = sa.String(100)
TIME = sa.DateTime(timezone=True)

_REFUSAL = "the audit log is append-only"


def upgrade() -> None:
    _create_projects()
    _create_api_keys()
    _create_sessions()
    _create_audit_log()
    _create_usage()
    _create_stored_answers()


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", ID, primary_key=True),
        sa.Column("name", WORD, nullable=False, unique=True),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("archived_at", TIME, nullable=True),
        sa.Column("max_live_runs", sa.Integer(), nullable=True),
        sa.Column("max_runs_per_day", sa.Integer(), nullable=True),
        sa.Column("max_device_s_per_month", sa.Double(), nullable=True),
        sa.Column("max_usd_per_month", sa.Double(), nullable=True),
    )


def _create_api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False, unique=True),
        sa.Column("digest", HASH, nullable=False),
        sa.Column("scope", WORD, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
    )
    op.create_index("ix_api_keys_project_id_id", "api_keys", ["project_id", "id"])


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("key_id", ID, sa.ForeignKey("api_keys.id"), nullable=True),
        sa.Column("digest", HASH, nullable=False, unique=True),
        sa.Column("scope", WORD, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
    )
    op.create_index("ix_sessions_key_id", "sessions", ["key_id"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", ID, primary_key=True),
        sa.Column("at", TIME, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", WORD, nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
    )
    op.create_index("ix_audit_log_project_id_id", "audit_log", ["project_id", "id"])
    _make_append_only()


def _create_usage() -> None:
    op.create_table(
        "usage",
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
    )


def _create_stored_answers() -> None:
    op.create_table(
        "stored_answers",
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("fingerprint", HASH, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_index("ix_stored_answers_created_at", "stored_answers", ["created_at"])

    op.execute(
        "INSERT INTO projects (id, name, weight, created_at) VALUES ('default', 'default', 1.0, CURRENT_TIMESTAMP)"
    )


def _make_append_only() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log "
            "FOR EACH ROW EXECUTE FUNCTION refuse_audit_change()"
        )
        return
    for event in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_log_no_{event.lower()} BEFORE {event} ON audit_log "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        )
