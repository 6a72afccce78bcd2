"""The core tables. Lists sort and filter by columns; immutable values are JSON with their `schema_version`.

projects ── problems ── admissions, baselines          champions ── evaluations
                └────── runs ── proposals ── candidates ── evaluations ── samples
                          ├──── arm_stats, events

The queue lies in `db.tables.queue`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Double, ForeignKey, Index, LargeBinary, Text, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, Hash, Id, Word


class Project(Base):
    """A tenant. `weight` is its share of the queues; a limit that is null limits nothing."""

    __tablename__ = "projects"

    id: Mapped[Id] = mapped_column(primary_key=True)
    name: Mapped[Word] = mapped_column(unique=True)
    weight: Mapped[float] = mapped_column(Double, default=1.0)
    created_at: Mapped[datetime]
    archived_at: Mapped[datetime | None]
    max_live_runs: Mapped[int | None]
    max_runs_per_day: Mapped[int | None]
    max_device_s_per_month: Mapped[float | None] = mapped_column(Double)
    max_usd_per_month: Mapped[float | None] = mapped_column(Double)


class ProblemRow(Base):
    """`body` is the Problem's JSON; immutable. `family` is read from it once.

    `public`: other projects may see it and its Champions.
    """

    __tablename__ = "problems"
    __table_args__ = (
        UniqueConstraint("project_id", "hash"),
        Index("ix_problems_public", "hash", sqlite_where=text("public = 1"), postgresql_where=text("public")),
    )

    id: Mapped[Id] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    hash: Mapped[Hash] = mapped_column(index=True)
    name: Mapped[str] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text)
    body: Mapped[dict[str, Any]]
    schema_version: Mapped[int]
    family: Mapped[Word] = mapped_column(default="other", server_default="other")
    public: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime]


class AdmissionRow(Base):
    """One trial of a reference on a device kind. `state` is open, accepted, refused or failed."""

    __tablename__ = "admissions"
    __table_args__ = (Index(None, "problem_id", "device_kind", "state"),)

    id: Mapped[Id] = mapped_column(primary_key=True)
    problem_id: Mapped[Id] = mapped_column(ForeignKey("problems.id"))
    device_kind: Mapped[Word]
    state: Mapped[Word]
    environment_key: Mapped[Hash | None]
    body: Mapped[dict[str, Any] | None]
    schema_version: Mapped[int]
    created_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


class BaselineRow(Base):
    """The Baselines of a Problem, looked up by Problem and environment. `state` is open, timed or failed.

    Modes that compile for long are added to a timed one later.
    """

    __tablename__ = "baselines"
    __table_args__ = (Index(None, "problem_id", "device_kind", "state"),)

    id: Mapped[Id] = mapped_column(primary_key=True)
    problem_id: Mapped[Id] = mapped_column(ForeignKey("problems.id"))
    device_kind: Mapped[Word]
    state: Mapped[Word]
    device_name: Mapped[str | None] = mapped_column(Text)
    environment_key: Mapped[Hash | None]
    body: Mapped[dict[str, Any] | None]
    schema_version: Mapped[int]
    created_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


class RunRow(Base):
    """A Run and its counters. `decisions` numbers the search's decisions; `last_seq` its events."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "project_id", "kind", "id"), Index(None, "project_id", "id"), Index(None, "status"))

    id: Mapped[Id] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    problem_id: Mapped[Id] = mapped_column(ForeignKey("problems.id"), index=True)
    kind: Mapped[Word] = mapped_column(default="optimise", server_default="optimise")
    device_kind: Mapped[Word]
    status: Mapped[Word]
    end_reason: Mapped[Word | None]
    message: Mapped[str] = mapped_column(Text, default="")
    budget: Mapped[dict[str, Any]]
    config: Mapped[dict[str, Any]]
    admission_id: Mapped[Id | None] = mapped_column(ForeignKey("admissions.id"), index=True)
    baseline_id: Mapped[Id | None] = mapped_column(ForeignKey("baselines.id"), index=True)
    champion_id: Mapped[Id | None]
    warm_id: Mapped[Id | None]
    forked_from: Mapped[Id | None]
    best_id: Mapped[Id | None]
    best_speedup: Mapped[float | None] = mapped_column(Double)
    spent_candidates: Mapped[int] = mapped_column(default=0)
    spent_tokens: Mapped[int] = mapped_column(default=0)
    spent_usd: Mapped[float] = mapped_column(Double, default=0.0)
    spent_device_s: Mapped[float] = mapped_column(Double, default=0.0)
    judged: Mapped[int] = mapped_column(default=0)
    judged_s: Mapped[float] = mapped_column(Double, default=0.0)
    confirmed: Mapped[int] = mapped_column(default=0)
    confirmed_s: Mapped[float] = mapped_column(Double, default=0.0)
    since_best: Mapped[int] = mapped_column(default=0)
    faults: Mapped[int] = mapped_column(default=0)
    decisions: Mapped[int] = mapped_column(default=0)
    proposals: Mapped[int] = mapped_column(default=0)
    candidates: Mapped[int] = mapped_column(default=0)
    advances: Mapped[int] = mapped_column(default=0)
    last_seq: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    paused_at: Mapped[datetime | None]
    paused_from: Mapped[Word | None]
    paused_s: Mapped[float] = mapped_column(Double, default=0.0)
    deadline_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class ProposalRow(Base):
    """`outcome` is null while it is open. `arm_number` counts within the Run and arm.

    `repeats` counts the arm's answers in a row, at the time it was opened, that were duplicates.
    `prompt_parts` and `reply_parts` name the texts' parts in `texts`. `plan` is what the model said it would do.
    `held_*` is the most that its calls in flight can cost; it counts against the Run's budget until it is settled.
    """

    __tablename__ = "proposals"
    __table_args__ = (
        UniqueConstraint("run_id", "number"),
        Index(None, "run_id", "outcome"),
        # Every decision asks for the few open ones: an index of their own, independent of statistics.
        Index(
            "ix_proposals_open",
            "run_id",
            sqlite_where=text("outcome IS NULL"),
            postgresql_where=text("outcome IS NULL"),
        ),
    )

    id: Mapped[Id] = mapped_column(primary_key=True)
    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"))
    number: Mapped[int]
    proposer: Mapped[str] = mapped_column(Text)
    operator: Mapped[Word]
    model: Mapped[str] = mapped_column(Text)
    variant: Mapped[Word]
    arm_number: Mapped[int]
    island: Mapped[int]
    parents: Mapped[list[str]]
    hint: Mapped[dict[str, Any]]
    outcome: Mapped[Word | None]
    candidate_id: Mapped[Id | None]
    prompt_parts: Mapped[list[str]] = mapped_column(default=list, server_default="[]")
    prompt_template: Mapped[str] = mapped_column(Text, default="")
    reply_parts: Mapped[list[str]] = mapped_column(default=list, server_default="[]")
    plan: Mapped[str] = mapped_column(Text, default="", server_default="")
    detail: Mapped[str] = mapped_column(Text, default="")
    fault: Mapped[Word | None]
    repeats: Mapped[int] = mapped_column(default=0, server_default="0")
    answered_by: Mapped[str] = mapped_column(Text, default="")
    input_tokens: Mapped[int] = mapped_column(default=0)
    output_tokens: Mapped[int] = mapped_column(default=0)
    usd: Mapped[float] = mapped_column(Double, default=0.0)
    held_tokens: Mapped[int] = mapped_column(default=0, server_default="0")
    held_usd: Mapped[float] = mapped_column(Double, default=0.0, server_default="0")
    duration_s: Mapped[float] = mapped_column(Double, default=0.0)
    created_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


class ArmStat(Base):
    """The cost and results of a Run's arm, kept as counters so that a decision need not scan Proposals."""

    __tablename__ = "arm_stats"

    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    proposer: Mapped[str] = mapped_column(Text, primary_key=True)
    operator: Mapped[Word] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(Text, primary_key=True)
    variant: Mapped[Word] = mapped_column(primary_key=True)
    asked: Mapped[int] = mapped_column(default=0)
    settled: Mapped[int] = mapped_column(default=0)
    candidates: Mapped[int] = mapped_column(default=0)
    judged: Mapped[int] = mapped_column(default=0)
    passed: Mapped[int] = mapped_column(default=0)
    reward: Mapped[float] = mapped_column(Double, default=0.0)
    tokens: Mapped[int] = mapped_column(default=0)
    usd: Mapped[float] = mapped_column(Double, default=0.0)
    propose_s: Mapped[float] = mapped_column(Double, default=0.0)
    device_s: Mapped[float] = mapped_column(Double, default=0.0)
    errors_in_row: Mapped[int] = mapped_column(default=0)
    fault: Mapped[Word | None]
    faults_in_row: Mapped[int] = mapped_column(default=0, server_default="0")
    exhausted: Mapped[bool] = mapped_column(default=False)
    broke: Mapped[bool] = mapped_column(default=False, server_default=false())


FILTERS = ("verdict", "language", "confirmed", "island", "proposer", "model")
"""The filters of Candidate lists. The indexes hold them, so that rows without a match are never read."""


class CandidateRow(Base):
    """Immutable source, and the results so far (verdict to `confirmed`), which settlements update.

    An `outdated` speedup was timed over a Baseline that is not the fastest any more: it is an estimate over the one
    that is. `retimed` means that it was ordered since then to be timed again.
    """

    __tablename__ = "candidates"
    __table_args__ = (
        UniqueConstraint("run_id", "hash"),
        Index("ix_candidates_newest", "run_id", "number", *FILTERS),
        Index("ix_candidates_fastest", "run_id", "speedup", "number", *FILTERS),
        Index(None, "run_id", "signature"),
        Index(None, "run_id", "launches"),
        Index("ix_candidates_family", "run_id", "family", "configuration_key", "speedup", "verdict"),
        Index("ix_candidates_elite", "run_id", "elite", "speedup"),
    )

    id: Mapped[Id] = mapped_column(primary_key=True)
    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"))
    problem_id: Mapped[Id] = mapped_column(ForeignKey("problems.id"))
    proposal_id: Mapped[Id] = mapped_column(ForeignKey("proposals.id"), unique=True)
    number: Mapped[int]
    hash: Mapped[Hash]
    language: Mapped[Word]
    source: Mapped[str] = mapped_column(Text)
    proposer: Mapped[str] = mapped_column(Text)
    operator: Mapped[Word]
    model: Mapped[str] = mapped_column(Text)
    variant: Mapped[Word]
    island: Mapped[int]
    parents: Mapped[list[str]]
    family: Mapped[Hash | None]
    tunables: Mapped[dict[str, Any]]
    configuration: Mapped[dict[str, Any]]
    configuration_key: Mapped[str | None] = mapped_column(Text)
    signature: Mapped[str | None] = mapped_column(Text)
    launches: Mapped[str | None] = mapped_column(Text)
    niche: Mapped[str] = mapped_column(Text)
    build: Mapped[dict[str, Any] | None]
    verdict: Mapped[Word | None]
    stage: Mapped[Word | None]
    reason: Mapped[str] = mapped_column(Text, default="")
    speedup: Mapped[float | None] = mapped_column(Double)
    speedup_low: Mapped[float | None] = mapped_column(Double)
    speedup_high: Mapped[float | None] = mapped_column(Double)
    confidence: Mapped[float | None] = mapped_column(Double)
    repairs: Mapped[int] = mapped_column(default=0)
    elite: Mapped[bool] = mapped_column(default=False)
    outdated: Mapped[bool] = mapped_column(default=False)
    retimed: Mapped[bool] = mapped_column(default=False)
    confirms: Mapped[int] = mapped_column(default=0)
    confirmed: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]


class EvaluationRow(Base):
    """One judging. `state` is building, judging, settled, duplicate or cancelled. Samples lie in `samples`."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint("candidate_id", "ordinal"),
        Index(None, "run_id", "id"),
        Index(None, "run_id", "state", "id"),
        Index(None, "run_id", "verdict", "id"),
    )

    id: Mapped[Id] = mapped_column(primary_key=True)
    candidate_id: Mapped[Id] = mapped_column(ForeignKey("candidates.id"))
    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"))
    ordinal: Mapped[int]
    kind: Mapped[Word]
    state: Mapped[Word]
    against_id: Mapped[Id | None]
    verdict: Mapped[Word | None]
    stage: Mapped[Word | None]
    reason: Mapped[str] = mapped_column(Text, default="")
    device_name: Mapped[str | None] = mapped_column(Text)
    environment_key: Mapped[Hash | None]
    body: Mapped[dict[str, Any] | None]
    schema_version: Mapped[int]
    device_s: Mapped[float] = mapped_column(Double, default=0.0)
    created_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


class SampleRow(Base):
    """Raw timing samples in microseconds, packed as little-endian float64.

    `owner_id` is an Evaluation or a Baseline report. `series` is "" for the Candidate, else "mode/clock" of a Baseline.
    """

    __tablename__ = "samples"

    owner_id: Mapped[Id] = mapped_column(primary_key=True)
    workload: Mapped[Word] = mapped_column(primary_key=True)
    series: Mapped[Word] = mapped_column(primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


class ChampionRow(Base):
    """A promotion. The newest of a Problem on a device is `standing`; the others are its history."""

    __tablename__ = "champions"
    __table_args__ = (
        Index(
            "uq_champions_current",
            "problem_id",
            "device_kind",
            "device_name",
            unique=True,
            sqlite_where=text("standing = 1"),
            postgresql_where=text("standing"),
        ),
        Index(None, "project_id", "standing", "speedup"),
        Index(None, "run_id"),
        Index(None, "problem_id", "id"),
    )

    id: Mapped[Id] = mapped_column(primary_key=True)
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    problem_id: Mapped[Id] = mapped_column(ForeignKey("problems.id"))
    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"))
    candidate_id: Mapped[Id] = mapped_column(ForeignKey("candidates.id"), index=True)
    evaluation_id: Mapped[Id] = mapped_column(ForeignKey("evaluations.id"), unique=True)
    device_kind: Mapped[Word]
    device_name: Mapped[str] = mapped_column(Text)
    standing: Mapped[bool]
    speedup: Mapped[float] = mapped_column(Double)
    against_fastest: Mapped[dict[str, Any]]
    against_eager: Mapped[dict[str, Any] | None]
    fastest_baseline: Mapped[str] = mapped_column(Text)
    roofline: Mapped[float | None] = mapped_column(Double)
    promoted_at: Mapped[datetime]


class EventRow(Base):
    """Append-only. `seq` is taken from `runs.last_seq` in the writing transaction: gap-free, in commit order."""

    __tablename__ = "events"

    run_id: Mapped[Id] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[Word]
    data: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class StoredAnswerRow(Base):
    """The answer to a POST with an Idempotency-Key; kept for two days."""

    __tablename__ = "stored_answers"

    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    fingerprint: Mapped[Hash]
    status: Mapped[int]
    location: Mapped[str | None] = mapped_column(Text)
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(index=True)
