"""Keys, the audit log, and who one is: what is taken and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from db.views import ApiKeyView, AuditView
from service.principal import Scope
from service.schemas.fields import WHOLE, Name, Strict

PROJECT_ID = r"^[a-z0-9_]{1,40}$"


class ApiKeyRequest(Strict):
    """A key to make."""

    name: Annotated[Name, Field(description="Whose it is or what for.", examples=["nightly runs"])]
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
        """The answer for a fresh key."""
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
    """Who asks. `actor` is how the audit log names them."""

    project_id: str
    scope: Scope
    actor: str
