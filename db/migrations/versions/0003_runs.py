"""Runs with their Proposals, Candidates, Evaluations, Champions, Events and history.

Revision: 0003, after 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.String(40)
HASH = sa.String(64)
WORD = sa.String(100)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_runs()
    _create_events()
    _create_texts()
    _create_proposals()
    _create_arm_stats()
    _create_candidates()
    _create_evaluations()
    _create_samples()
    _create_workload_ratios()
    _create_champions()
    _create_milestones()
    _create_tallies()
    _create_lessons()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("problem_id", ID, sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("kind", WORD, nullable=False, server_default="optimise"),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("end_reason", WORD, nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("budget", sa.JSON(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("admission_id", ID, sa.ForeignKey("admissions.id"), nullable=True),
        sa.Column("baseline_id", ID, sa.ForeignKey("baselines.id"), nullable=True),
        sa.Column("champion_id", ID, nullable=True),
        sa.Column("warm_id", ID, nullable=True),
        sa.Column("forked_from", ID, nullable=True),
        sa.Column("best_id", ID, nullable=True),
        sa.Column("best_speedup", sa.Double(), nullable=True),
        sa.Column("spent_candidates", sa.Integer(), nullable=False),
        sa.Column("spent_tokens", sa.Integer(), nullable=False),
        sa.Column("spent_usd", sa.Double(), nullable=False),
        sa.Column("spent_device_s", sa.Double(), nullable=False),
        sa.Column("judged", sa.Integer(), nullable=False),
        sa.Column("judged_s", sa.Double(), nullable=False),
        sa.Column("confirmed", sa.Integer(), nullable=False),
        sa.Column("confirmed_s", sa.Double(), nullable=False),
        sa.Column("since_best", sa.Integer(), nullable=False),
        sa.Column("faults", sa.Integer(), nullable=False),
        sa.Column("decisions", sa.Integer(), nullable=False),
        sa.Column("proposals", sa.Integer(), nullable=False),
        sa.Column("candidates", sa.Integer(), nullable=False),
        sa.Column("advances", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("paused_at", TIME, nullable=True),
        sa.Column("paused_from", WORD, nullable=True),
        sa.Column("paused_s", sa.Double(), nullable=False),
        sa.Column("deadline_at", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
    )
    op.create_index("ix_runs_admission_id", "runs", ["admission_id"])
    op.create_index("ix_runs_baseline_id", "runs", ["baseline_id"])
    op.create_index("ix_runs_problem_id", "runs", ["problem_id"])
    op.create_index("ix_runs_project_id_id", "runs", ["project_id", "id"])
    op.create_index("ix_runs_status", "runs", ["status"])
    op.create_index("ix_runs_project_id_kind_id", "runs", ["project_id", "kind", "id"])


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("seq", sa.Integer(), primary_key=True),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )


def _create_texts() -> None:
    op.create_table(
        "texts",
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("hash", HASH, primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )


def _create_proposals() -> None:
    op.create_table(
        "proposals",
        sa.Column("id", ID, primary_key=True),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("proposer", sa.Text(), nullable=False),
        sa.Column("operator", WORD, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("variant", WORD, nullable=False),
        sa.Column("arm_number", sa.Integer(), nullable=False),
        sa.Column("island", sa.Integer(), nullable=False),
        sa.Column("parents", sa.JSON(), nullable=False),
        sa.Column("hint", sa.JSON(), nullable=False),
        sa.Column("outcome", WORD, nullable=True),
        sa.Column("candidate_id", ID, nullable=True),
        sa.Column("prompt_parts", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("prompt_template", sa.Text(), nullable=False),
        sa.Column("reply_parts", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("plan", sa.Text(), nullable=False, server_default=""),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("fault", WORD, nullable=True),
        sa.Column("repeats", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("answered_by", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("held_tokens", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("held_usd", sa.Double(), nullable=False, server_default="0"),
        sa.Column("duration_s", sa.Double(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("settled_at", TIME, nullable=True),
        sa.UniqueConstraint("run_id", "number"),
    )
    op.create_index("ix_proposals_run_id_outcome", "proposals", ["run_id", "outcome"])
    op.create_index(
        "ix_proposals_open",
        "proposals",
        ["run_id"],
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )


def _create_arm_stats() -> None:
    op.create_table(
        "arm_stats",
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("proposer", sa.Text(), primary_key=True),
        sa.Column("operator", WORD, primary_key=True),
        sa.Column("model", sa.Text(), primary_key=True),
        sa.Column("variant", WORD, primary_key=True),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("settled", sa.Integer(), nullable=False),
        sa.Column("candidates", sa.Integer(), nullable=False),
        sa.Column("judged", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("reward", sa.Double(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("propose_s", sa.Double(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("errors_in_row", sa.Integer(), nullable=False),
        sa.Column("fault", WORD, nullable=True),
        sa.Column("faults_in_row", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("exhausted", sa.Boolean(), nullable=False),
        sa.Column("broke", sa.Boolean(), nullable=False, server_default=sa.false()),
    )


def _create_candidates() -> None:
    op.create_table(
        "candidates",
        sa.Column("id", ID, primary_key=True),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("problem_id", ID, sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("proposal_id", ID, sa.ForeignKey("proposals.id"), nullable=False, unique=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", HASH, nullable=False),
        sa.Column("language", WORD, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("proposer", sa.Text(), nullable=False),
        sa.Column("operator", WORD, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("variant", WORD, nullable=False),
        sa.Column("island", sa.Integer(), nullable=False),
        sa.Column("parents", sa.JSON(), nullable=False),
        sa.Column("family", HASH, nullable=True),
        sa.Column("tunables", sa.JSON(), nullable=False),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("configuration_key", sa.Text(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("launches", sa.Text(), nullable=True),
        sa.Column("niche", sa.Text(), nullable=False),
        sa.Column("build", sa.JSON(), nullable=True),
        sa.Column("verdict", WORD, nullable=True),
        sa.Column("stage", WORD, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=True),
        sa.Column("speedup_low", sa.Double(), nullable=True),
        sa.Column("speedup_high", sa.Double(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("repairs", sa.Integer(), nullable=False),
        sa.Column("elite", sa.Boolean(), nullable=False),
        sa.Column("outdated", sa.Boolean(), nullable=False),
        sa.Column("retimed", sa.Boolean(), nullable=False),
        sa.Column("confirms", sa.Integer(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.UniqueConstraint("run_id", "hash"),
    )
    # The order counts: SQLite's planner chooses by it between indexes that it rates alike.
    op.create_index("ix_candidates_run_id_launches", "candidates", ["run_id", "launches"])
    op.create_index("ix_candidates_run_id_signature", "candidates", ["run_id", "signature"])
    op.create_index(
        "ix_candidates_newest",
        "candidates",
        ["run_id", "number", "verdict", "language", "confirmed", "island", "proposer", "model"],
    )
    op.create_index(
        "ix_candidates_fastest",
        "candidates",
        ["run_id", "speedup", "number", "verdict", "language", "confirmed", "island", "proposer", "model"],
    )
    op.create_index(
        "ix_candidates_family", "candidates", ["run_id", "family", "configuration_key", "speedup", "verdict"]
    )
    op.create_index("ix_candidates_elite", "candidates", ["run_id", "elite", "speedup"])


def _create_evaluations() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", ID, primary_key=True),
        sa.Column("candidate_id", ID, sa.ForeignKey("candidates.id"), nullable=False),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("against_id", ID, nullable=True),
        sa.Column("verdict", WORD, nullable=True),
        sa.Column("stage", WORD, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("device_name", sa.Text(), nullable=True),
        sa.Column("environment_key", HASH, nullable=True),
        sa.Column("body", sa.JSON(), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("settled_at", TIME, nullable=True),
        sa.UniqueConstraint("candidate_id", "ordinal"),
    )
    op.create_index("ix_evaluations_run_id_id", "evaluations", ["run_id", "id"])
    op.create_index("ix_evaluations_run_id_state_id", "evaluations", ["run_id", "state", "id"])
    op.create_index("ix_evaluations_run_id_verdict_id", "evaluations", ["run_id", "verdict", "id"])


def _create_samples() -> None:
    op.create_table(
        "samples",
        sa.Column("owner_id", ID, primary_key=True),
        sa.Column("workload", WORD, primary_key=True),
        sa.Column("series", WORD, primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )


def _create_workload_ratios() -> None:
    op.create_table(
        "workload_ratios",
        sa.Column("candidate_id", ID, sa.ForeignKey("candidates.id"), primary_key=True),
        sa.Column("workload", WORD, primary_key=True),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("combined", sa.Boolean(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
    )
    op.create_index("ix_workload_ratios_fastest", "workload_ratios", ["run_id", "workload", "combined", "speedup"])


def _create_champions() -> None:
    op.create_table(
        "champions",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("problem_id", ID, sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("candidate_id", ID, sa.ForeignKey("candidates.id"), nullable=False),
        sa.Column("evaluation_id", ID, sa.ForeignKey("evaluations.id"), nullable=False, unique=True),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("device_name", sa.Text(), nullable=False),
        sa.Column("standing", sa.Boolean(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("against_fastest", sa.JSON(), nullable=False),
        sa.Column("against_eager", sa.JSON(), nullable=True),
        sa.Column("fastest_baseline", sa.Text(), nullable=False),
        sa.Column("roofline", sa.Double(), nullable=True),
        sa.Column("promoted_at", TIME, nullable=False),
    )
    op.create_index("ix_champions_project_id_standing_speedup", "champions", ["project_id", "standing", "speedup"])
    op.create_index(
        "uq_champions_current",
        "champions",
        ["problem_id", "device_kind", "device_name"],
        unique=True,
        sqlite_where=sa.text("standing = 1"),
        postgresql_where=sa.text("standing"),
    )
    op.create_index("ix_champions_run_id", "champions", ["run_id"])
    op.create_index("ix_champions_problem_id_id", "champions", ["problem_id", "id"])
    op.create_index("ix_champions_candidate_id", "champions", ["candidate_id"])


def _create_milestones() -> None:
    op.create_table(
        "milestones",
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("candidate_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("speedup_low", sa.Double(), nullable=False),
        sa.Column("speedup_high", sa.Double(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("evaluations", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("at", TIME, nullable=False),
    )


def _create_tallies() -> None:
    op.create_table(
        "tallies",
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("kind", WORD, primary_key=True),
        sa.Column("stage", WORD, primary_key=True),
        sa.Column("verdict", WORD, primary_key=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
    )


def _create_lessons() -> None:
    op.create_table(
        "lessons",
        sa.Column("id", ID, primary_key=True),
        sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("problem_id", ID, sa.ForeignKey("problems.id"), nullable=False),
        sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("device_kind", WORD, nullable=False),
        sa.Column("device_name", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("sizes", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_index("ix_lessons_device_kind_device_name_id", "lessons", ["device_kind", "device_name", "id"])
    op.create_index("ix_lessons_run_id", "lessons", ["run_id"])
