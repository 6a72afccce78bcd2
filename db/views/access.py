"""Keys, projects and the audit log as the repositories return them. Timestamps are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyView:
    """An API key without its secret. `prefix` is how the secret begins; `last_used_at` is right to a few minutes."""

    id: str
    project_id: str
    name: str
    prefix: str
    scope: str
    created_by: str
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rights of a presented secret. `credential` is the id of the revocable thing: a key or a session."""

    credential: str
    key_id: str | None
    project_id: str
    scope: str
    actor: str
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """One line of the audit log. `actor` is a key's id, "bootstrap" or "local"; `action` an operation's name."""

    id: str
    at: str
    project_id: str
    actor: str
    action: str
    subject: str
    address: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The limits of a project; None: no limit. Days and months are in UTC."""

    live_runs: int | None = None
    runs_per_day: int | None = None
    device_s_per_month: float | None = None
    usd_per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A project's live Runs, its Runs started today, and its charges of this month."""

    live_runs: int
    runs_today: int
    month: str
    device_s: float
    usd: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A project. `weight` is its share of the devices against other waiting projects."""

    id: str
    name: str
    weight: float
    quota: Quota
    created_at: str
    archived_at: str | None
