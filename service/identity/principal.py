"""The caller of a request, and the scope that a route needs.

A route declares its scope by the type of a parameter: `Reads`, `Submits`, `Manages` or `Operates`. The access layer has
made the Principal before; a test holds every route to one of these types.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from service.errors import Forbidden, Unauthorized

DEFAULT_PROJECT = "default"


class Scope(StrEnum):
    """The rights of a key. Each scope includes those before it."""

    READ = "read"
    SUBMIT = "submit"
    MANAGE = "manage"
    OPERATOR = "operator"

    def allows(self, needed: Scope) -> bool:
        """Tell whether this scope includes `needed`."""
        order = list(Scope)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller and its project. `actor` names it in the audit log: a key's id, or "bootstrap", or "local".

    `credential` must stay valid while a stream is open: a key's or a session's id, None where nothing can be revoked.
    `csrf_token` is set only for a browser session: every unsafe request has to carry it.
    """

    project_id: str
    scope: Scope
    actor: str
    credential: str | None = None
    csrf_token: str | None = None
    address: str = ""

    @property
    def is_operator(self) -> bool:
        return self.scope is Scope.OPERATOR


LOCAL = Principal(project_id=DEFAULT_PROJECT, scope=Scope.OPERATOR, actor="local")
BOOTSTRAP = Principal(project_id=DEFAULT_PROJECT, scope=Scope.OPERATOR, actor="bootstrap")


VIEWER: ContextVar[Principal | None] = ContextVar("viewer", default=None)
"""The caller of this request, for templates; routes take it as a parameter."""


def principal_of(request: Request) -> Principal:
    """Return the caller. Raise Unauthorized on the few open addresses, which identify none."""
    found: Principal | None = request.scope.get("principal")
    if found is None:
        raise Unauthorized("Send an API key: Authorization: Bearer KEY.", headers={"WWW-Authenticate": "Bearer"})
    return found


class RequiresScope:
    """The dependency behind `Reads`, `Submits`, `Manages` and `Operates`; tests and OpenAPI read `scope`."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def __call__(self, request: Request) -> Principal:
        who = principal_of(request)
        if not who.scope.allows(self.scope):
            raise Forbidden(
                f"This needs a key with the scope {self.scope.value!r}; this one has {who.scope.value!r}. "
                f"Ask {'the operator' if self.scope is Scope.OPERATOR else 'a manager of the project'} for one.",
                slug="scope-missing",
                title="The key does not allow this",
                needed=self.scope.value,
            )
        return who


def scope_of(calls: list[Callable[..., object] | None]) -> Scope | None:
    """Return the scope that one of a route's dependencies requires, or None."""
    return next((call.scope for call in calls if isinstance(call, RequiresScope)), None)


Reads = Annotated[Principal, Depends(RequiresScope(Scope.READ))]
Submits = Annotated[Principal, Depends(RequiresScope(Scope.SUBMIT))]
Manages = Annotated[Principal, Depends(RequiresScope(Scope.MANAGE))]
Operates = Annotated[Principal, Depends(RequiresScope(Scope.OPERATOR))]
