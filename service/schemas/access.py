"""Requests and answers of projects, keys, the audit log and the caller's own identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from db.views.access import ApiKeyView, AuditView, ProjectView, Quota, Usage
from service.identity.principal import Scope
from service.schemas.fields import WHOLE, Name, Strict

PROJECT_ID = r"^[a-z0-9_]{1,40}$"


class ApiKeyRequest(Strict):
    """A key to make."""

    name: Annotated[Name, Field(description="Its owner or purpose.", examples=["nightly runs"])]
    scope: Annotated[Scope, Field(strict=False)] = Field(
        default=Scope.SUBMIT, description="Each allows all before it: read, submit, manage, operator."
    )
    expires_in_days: Annotated[int, Field(ge=1, le=3650), WHOLE] | None = Field(
        default=None, description="Default: never."
    )
    project_id: Annotated[str, Field(pattern=PROJECT_ID)] | None = Field(
        default=None, description="Default: your own; the operator may name another."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key as made. `key` is the secret: it is shown here and never again."""

    id: str
    project_id: str
    name: str
    scope: str
    created_at: str
    expires_at: str | None
    key: str

    @classmethod
    def of(cls, view: ApiKeyView, secret: str) -> NewApiKey:
        return cls(
            id=view.id,
            project_id=view.project_id,
            name=view.name,
            scope=view.scope,
            created_at=view.created_at,
            expires_at=view.expires_at,
            key=secret,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyPage:
    items: tuple[ApiKeyView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    items: tuple[AuditView, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoAmI:
    """The caller. `actor` is its name in the audit log."""

    project_id: str
    scope: Scope
    actor: str


ProjectName = Annotated[
    str,
    Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["attention-team"]),
]
Weight = Annotated[float, Field(ge=0.01, le=1000.0, allow_inf_nan=False)]


class QuotaRequest(Strict):
    """The limits of a project; null or left out: no limit. Days and months are in UTC."""

    live_runs: Annotated[int, Field(ge=0, le=10**6), WHOLE] | None = Field(
        default=None, description="Runs that have not ended, paused ones too."
    )
    runs_per_day: Annotated[int, Field(ge=0, le=10**6), WHOLE] | None = Field(default=None, description="Runs started.")
    device_s_per_month: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="Seconds on devices; waiting is not charged."
    )
    usd_per_month: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="US dollars for language models."
    )

    def quota(self) -> Quota:
        """Convert to a Quota."""
        return Quota(**self.model_dump())


class ProjectRequest(Strict):
    """A project to make."""

    name: Annotated[ProjectName, Field(description="A unique display name.")]
    weight: Weight = Field(default=1.0, description="Its share of the devices against other waiting projects.")
    quota: QuotaRequest = QuotaRequest()


class ProjectChangeRequest(Strict):
    """Changes of a project; omitted fields stay. A `quota` replaces the whole quota."""

    name: ProjectName | None = None
    weight: Weight | None = None
    quota: QuotaRequest | None = None
    archived: bool | None = None


class VisibilityRequest(Strict):
    """The visibility of a Problem."""

    public: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAnswer:
    """A project with its quotas and usage."""

    id: str
    name: str
    weight: float
    quota: Quota
    usage: Usage
    created_at: str
    archived_at: str | None

    @classmethod
    def of(cls, view: ProjectView, usage: Usage) -> ProjectAnswer:
        return cls(
            id=view.id,
            name=view.name,
            weight=view.weight,
            quota=view.quota,
            usage=usage,
            created_at=view.created_at,
            archived_at=view.archived_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    items: tuple[ProjectAnswer, ...]
    next_cursor: str | None
