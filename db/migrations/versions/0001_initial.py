"""The first tables.

Revision: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "devices",
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queue", sa.String(length=100), nullable=False),
        sa.Column("facts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("environment", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("environment_key", sa.String(length=64), nullable=False),
        sa.Column("isolation", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name=op.f("pk_devices")),
    )
    with op.batch_alter_table("devices", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_devices_kind"), ["kind"], unique=False)

    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )
    op.create_table(
        "samples",
        sa.Column("owner_id", sa.String(length=40), nullable=False),
        sa.Column("workload", sa.String(length=100), nullable=False),
        sa.Column("series", sa.String(length=100), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "workload", "series", name=op.f("pk_samples")),
    )
    op.create_table(
        "problems",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_problems_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_problems")),
        sa.UniqueConstraint("project_id", "hash", name=op.f("uq_problems_project_id_hash")),
    )
    with op.batch_alter_table("problems", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_problems_hash"), ["hash"], unique=False)

    op.create_table(
        "shares",
        sa.Column("queue", sa.String(length=100), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("start", sa.Double(), nullable=False),
        sa.Column("finish", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_shares_project_id")),
        sa.PrimaryKeyConstraint("queue", "project_id", name=op.f("pk_shares")),
    )
    op.create_table(
        "admissions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("problem_id", sa.String(length=40), nullable=False),
        sa.Column("device_kind", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=100), nullable=False),
        sa.Column("environment_key", sa.String(length=64), nullable=True),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("fk_admissions_problem_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admissions")),
    )
    with op.batch_alter_table("admissions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_admissions_problem_id_device_kind_state"),
            ["problem_id", "device_kind", "state"],
            unique=False,
        )

    op.create_table(
        "baselines",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("problem_id", sa.String(length=40), nullable=False),
        sa.Column("device_kind", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=100), nullable=False),
        sa.Column("device_name", sa.Text(), nullable=True),
        sa.Column("environment_key", sa.String(length=64), nullable=True),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("fk_baselines_problem_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baselines")),
    )
    with op.batch_alter_table("baselines", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_baselines_problem_id_device_kind_state"),
            ["problem_id", "device_kind", "state"],
            unique=False,
        )

    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("problem_id", sa.String(length=40), nullable=False),
        sa.Column("device_kind", sa.String(length=100), nullable=False),
        sa.Column("status", sa.String(length=100), nullable=False),
        sa.Column("end_reason", sa.String(length=100), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("budget", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("admission_id", sa.String(length=40), nullable=True),
        sa.Column("baseline_id", sa.String(length=40), nullable=True),
        sa.Column("champion_id", sa.String(length=40), nullable=True),
        sa.Column("warm_id", sa.String(length=40), nullable=True),
        sa.Column("best_id", sa.String(length=40), nullable=True),
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
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_from", sa.String(length=100), nullable=True),
        sa.Column("paused_s", sa.Double(), nullable=False),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["admission_id"], ["admissions.id"], name=op.f("fk_runs_admission_id")),
        sa.ForeignKeyConstraint(["baseline_id"], ["baselines.id"], name=op.f("fk_runs_baseline_id")),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("fk_runs_problem_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_runs_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_admission_id"), ["admission_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_baseline_id"), ["baseline_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_problem_id"), ["problem_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_project_id_id"), ["project_id", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_status"), ["status"], unique=False)

    op.create_table(
        "arm_stats",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("proposer", sa.Text(), nullable=False),
        sa.Column("operator", sa.String(length=100), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("variant", sa.String(length=100), nullable=False),
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
        sa.Column("exhausted", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_arm_stats_run_id")),
        sa.PrimaryKeyConstraint("run_id", "proposer", "operator", "model", "variant", name=op.f("pk_arm_stats")),
    )
    op.create_table(
        "events",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_events_run_id")),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_events")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("queue", sa.String(length=100), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=True),
        sa.Column("subject_id", sa.String(length=40), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("state", sa.String(length=100), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(length=40), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("nudged_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_jobs_project_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_jobs_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("subject_id", "kind", "ordinal", name=op.f("uq_jobs_subject_id_kind_ordinal")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_jobs_queue_state_project_id_id"), ["queue", "state", "project_id", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_jobs_run_id_state"), ["run_id", "state"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_state_lease_until"), ["state", "lease_until"], unique=False)
        batch_op.create_index(
            "uq_jobs_ready_advance",
            ["subject_id"],
            unique=True,
            sqlite_where=sa.text("kind = 'advance' AND state IN ('ready', 'held')"),
            postgresql_where=sa.text("kind = 'advance' AND state IN ('ready', 'held')"),
        )

    op.create_table(
        "proposals",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("proposer", sa.Text(), nullable=False),
        sa.Column("operator", sa.String(length=100), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("variant", sa.String(length=100), nullable=False),
        sa.Column("arm_number", sa.Integer(), nullable=False),
        sa.Column("island", sa.Integer(), nullable=False),
        sa.Column("parents", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("hint", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("outcome", sa.String(length=100), nullable=True),
        sa.Column("candidate_id", sa.String(length=40), nullable=True),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("prompt_template", sa.Text(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("duration_s", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_proposals_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposals")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_proposals_run_id_number")),
    )
    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_proposals_run_id_outcome"), ["run_id", "outcome"], unique=False)

    op.create_table(
        "candidates",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("problem_id", sa.String(length=40), nullable=False),
        sa.Column("proposal_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("language", sa.String(length=100), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("proposer", sa.Text(), nullable=False),
        sa.Column("operator", sa.String(length=100), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("variant", sa.String(length=100), nullable=False),
        sa.Column("island", sa.Integer(), nullable=False),
        sa.Column("parents", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("family", sa.String(length=64), nullable=True),
        sa.Column("tunables", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("configuration", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("configuration_key", sa.Text(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("launches", sa.Text(), nullable=True),
        sa.Column("niche", sa.Text(), nullable=False),
        sa.Column("build", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("verdict", sa.String(length=100), nullable=True),
        sa.Column("stage", sa.String(length=100), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=True),
        sa.Column("speedup_low", sa.Double(), nullable=True),
        sa.Column("speedup_high", sa.Double(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("times_judged", sa.Integer(), nullable=False),
        sa.Column("repairs", sa.Integer(), nullable=False),
        sa.Column("elite", sa.Boolean(), nullable=False),
        sa.Column("confirms", sa.Integer(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("fk_candidates_problem_id")),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposals.id"], name=op.f("fk_candidates_proposal_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_candidates_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_candidates")),
        sa.UniqueConstraint("proposal_id", name=op.f("uq_candidates_proposal_id")),
        sa.UniqueConstraint("run_id", "hash", name=op.f("uq_candidates_run_id_hash")),
    )
    with op.batch_alter_table("candidates", schema=None) as batch_op:
        batch_op.create_index("ix_candidates_cell", ["run_id", "island", "niche", "speedup"], unique=False)
        batch_op.create_index(batch_op.f("ix_candidates_run_id_elite"), ["run_id", "elite"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_candidates_run_id_family_configuration_key"),
            ["run_id", "family", "configuration_key"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_candidates_run_id_launches"), ["run_id", "launches"], unique=False)
        batch_op.create_index(batch_op.f("ix_candidates_run_id_number"), ["run_id", "number"], unique=False)
        batch_op.create_index(batch_op.f("ix_candidates_run_id_signature"), ["run_id", "signature"], unique=False)
        batch_op.create_index("ix_candidates_speedup", ["run_id", "speedup"], unique=False)

    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("candidate_id", sa.String(length=40), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=100), nullable=False),
        sa.Column("against_id", sa.String(length=40), nullable=True),
        sa.Column("verdict", sa.String(length=100), nullable=True),
        sa.Column("stage", sa.String(length=100), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("device_name", sa.Text(), nullable=True),
        sa.Column("environment_key", sa.String(length=64), nullable=True),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidates.id"], name=op.f("fk_evaluations_candidate_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluations_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
        sa.UniqueConstraint("candidate_id", "ordinal", name=op.f("uq_evaluations_candidate_id_ordinal")),
    )
    with op.batch_alter_table("evaluations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_evaluations_run_id_state"), ["run_id", "state"], unique=False)

    op.create_table(
        "champions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("problem_id", sa.String(length=40), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("candidate_id", sa.String(length=40), nullable=False),
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("device_kind", sa.String(length=100), nullable=False),
        sa.Column("device_name", sa.Text(), nullable=False),
        sa.Column("standing", sa.Boolean(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("against_fastest", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("against_eager", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("fastest_baseline", sa.Text(), nullable=False),
        sa.Column("promoted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["candidate_id"], ["candidates.id"], name=op.f("fk_champions_candidate_id")),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], name=op.f("fk_champions_evaluation_id")),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("fk_champions_problem_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_champions_project_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_champions_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_champions")),
        sa.UniqueConstraint("evaluation_id", name=op.f("uq_champions_evaluation_id")),
    )
    with op.batch_alter_table("champions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_champions_project_id_standing_speedup"), ["project_id", "standing", "speedup"], unique=False
        )
        batch_op.create_index(
            "uq_champions_current",
            ["problem_id", "device_kind", "device_name"],
            unique=True,
            sqlite_where=sa.text("standing = 1"),
            postgresql_where=sa.text("standing"),
        )

    op.execute(
        sa.text(
            "INSERT INTO projects (id, name, weight, created_at) VALUES ('default', 'default', 1.0, CURRENT_TIMESTAMP)"
        )
    )


def downgrade() -> None:
    with op.batch_alter_table("champions", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_champions_current", sqlite_where=sa.text("standing = 1"), postgresql_where=sa.text("standing")
        )
        batch_op.drop_index(batch_op.f("ix_champions_project_id_standing_speedup"))

    op.drop_table("champions")
    with op.batch_alter_table("evaluations", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_evaluations_run_id_state"))

    op.drop_table("evaluations")
    with op.batch_alter_table("candidates", schema=None) as batch_op:
        batch_op.drop_index("ix_candidates_speedup")
        batch_op.drop_index(batch_op.f("ix_candidates_run_id_signature"))
        batch_op.drop_index(batch_op.f("ix_candidates_run_id_number"))
        batch_op.drop_index(batch_op.f("ix_candidates_run_id_launches"))
        batch_op.drop_index(batch_op.f("ix_candidates_run_id_family_configuration_key"))
        batch_op.drop_index(batch_op.f("ix_candidates_run_id_elite"))
        batch_op.drop_index("ix_candidates_cell")

    op.drop_table("candidates")
    with op.batch_alter_table("proposals", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_proposals_run_id_outcome"))

    op.drop_table("proposals")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_jobs_ready_advance",
            sqlite_where=sa.text("kind = 'advance' AND state IN ('ready', 'held')"),
            postgresql_where=sa.text("kind = 'advance' AND state IN ('ready', 'held')"),
        )
        batch_op.drop_index(batch_op.f("ix_jobs_state_lease_until"))
        batch_op.drop_index(batch_op.f("ix_jobs_run_id_state"))
        batch_op.drop_index(batch_op.f("ix_jobs_queue_state_project_id_id"))

    op.drop_table("jobs")
    op.drop_table("events")
    op.drop_table("arm_stats")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_runs_status"))
        batch_op.drop_index(batch_op.f("ix_runs_project_id_id"))
        batch_op.drop_index(batch_op.f("ix_runs_problem_id"))
        batch_op.drop_index(batch_op.f("ix_runs_baseline_id"))
        batch_op.drop_index(batch_op.f("ix_runs_admission_id"))

    op.drop_table("runs")
    with op.batch_alter_table("baselines", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_baselines_problem_id_device_kind_state"))

    op.drop_table("baselines")
    with op.batch_alter_table("admissions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_admissions_problem_id_device_kind_state"))

    op.drop_table("admissions")
    op.drop_table("shares")
    with op.batch_alter_table("problems", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_problems_hash"))

    op.drop_table("problems")
    op.drop_table("samples")
    op.drop_table("projects")
    with op.batch_alter_table("devices", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_devices_kind"))

    op.drop_table("devices")
