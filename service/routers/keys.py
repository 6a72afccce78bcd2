"""API keys: make one, list them, revoke one. A project's managers have their own keys, the operator has all."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from db.engine import read_session, write_session
from db.repositories.access import audit, keys
from db.transitions.access.keys import create_key, revoke_key
from db.views.access import ApiKeyView
from service.context import Ctx
from service.errors import Forbidden, NotFound
from service.http.answering import KeyId, answer, errors, refusals
from service.http.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.identity.auditing import record_operation
from service.identity.principal import Manages, Principal, Reads, Scope
from service.schemas.access import PROJECT_ID, ApiKeyPage, ApiKeyRequest, AuditPage, NewApiKey, WhoAmI

router = APIRouter(tags=["access"])

ProjectFilter = Annotated[
    str | None,
    Query(
        pattern=PROJECT_ID, description="Only of this project. Only the operator may name others, or omit it for all."
    ),
]


def seen_project(who: Principal, project_id: str | None) -> str | None:
    """Return the one project of a list, or None for all. Raise NotFound for another project."""
    if who.is_operator:
        return project_id
    if project_id not in (None, who.project_id):
        raise NotFound("There is no project with this id.")
    return who.project_id


@router.post(
    "/keys",
    operation_id="create_key",
    status_code=201,
    response_model=NewApiKey,
    responses=errors(404, 408, 413, 422),
    summary="Make an API key",
)
def create(context: Ctx, who: Manages, body: ApiKeyRequest) -> Response:
    """Create a key; the answer holds it, this once.

    Two POSTs make two keys: an Idempotency-Key would have to store the secret.
    """
    _check_scope(who, body.scope, "make")
    project_id = seen_project(who, body.project_id) or who.project_id
    with write_session(context.engine) as session, refusals():
        view, secret = create_key(
            session,
            project_id,
            name=body.name,
            scope=body.scope,
            created_by=who.actor,
            lifetime=None if body.expires_in_days is None else timedelta(days=body.expires_in_days),
        )
        record_operation(session, who, "create_key", view.id, project_id=project_id, name=view.name, scope=view.scope)
    headers = {"Location": f"/api/v1/keys/{view.id}", "Cache-Control": "no-store"}
    return answer(NewApiKey.of(view, secret), status=201, headers=headers)


@router.get(
    "/keys", operation_id="list_keys", response_model=ApiKeyPage, responses=errors(404, 422), summary="List API keys"
)
def list_all(
    context: Ctx, who: Manages, limit: Limit = 50, cursor: Cursor = None, project_id: ProjectFilter = None
) -> Response:
    """List newest first, without secrets, revoked keys too."""
    project = seen_project(who, project_id)
    name = f"keys:{project}"
    after = decode_cursor(name, cursor)
    with read_session(context.engine) as session:
        found = keys.list(session, project, limit=limit + 1, after=after)
    more = encode_cursor(name, found[limit - 1].id) if len(found) > limit else None
    return answer(ApiKeyPage(items=tuple(found[:limit]), next_cursor=more))


@router.get(
    "/keys/{id}", operation_id="get_key", response_model=ApiKeyView, responses=errors(404), summary="Read an API key"
)
def get(context: Ctx, who: Manages, id: KeyId) -> Response:
    """Return its project, its scope, and its last use."""
    with read_session(context.engine) as session, refusals():
        return answer(keys.get(session, id, project_id=seen_project(who, None)))


@router.delete(
    "/keys/{id}",
    operation_id="revoke_key",
    response_model=ApiKeyView,
    responses=errors(404, 408, 413),
    summary="Revoke an API key",
)
def revoke(context: Ctx, who: Manages, id: KeyId) -> Response:
    """Revoke it at once, with every session that it opened.

    Open streams end within seconds. The key stays listed. A key with a higher scope than the caller's is refused.
    """
    with write_session(context.engine) as session, refusals():
        project_id = seen_project(who, None)
        _check_scope(who, Scope(keys.get(session, id, project_id=project_id).scope), "revoke")
        view = revoke_key(session, id, project_id=project_id)
        record_operation(session, who, "revoke_key", id, project_id=view.project_id)
    return answer(view)


def _check_scope(who: Principal, scope: Scope, act: str) -> None:
    if not who.scope.allows(scope):
        raise Forbidden(
            f"A key with the scope {who.scope.value!r} cannot {act} one with {scope.value!r}.",
            slug="scope-missing",
            title="The key does not allow this",
            needed=scope.value,
        )


@router.get("/me", operation_id="get_me", response_model=WhoAmI, responses=errors(), summary="Read my own identity")
def me(who: Reads) -> Response:
    """Return the project and the scope of the key or session in use."""
    return answer(WhoAmI(project_id=who.project_id, scope=who.scope, actor=who.actor))


@router.get(
    "/audit",
    operation_id="list_audit",
    response_model=AuditPage,
    responses=errors(404, 422),
    summary="Read the audit log",
)
def list_audit(
    context: Ctx, who: Manages, limit: Limit = 50, cursor: Cursor = None, project_id: ProjectFilter = None
) -> Response:
    """List operations with actor, subject, time and address, newest first."""
    project = seen_project(who, project_id)
    name = f"audit:{project}"
    after = decode_cursor(name, cursor)
    with read_session(context.engine) as session:
        found = audit.list(session, project, limit=limit + 1, after=after)
    more = encode_cursor(name, found[limit - 1].id) if len(found) > limit else None
    return answer(AuditPage(items=tuple(found[:limit]), next_cursor=more))
