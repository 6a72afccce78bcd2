"""Projects: tenants with quotas. The operator creates and limits them; each project reads its own and its usage."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session, write_session
from db.repositories.access import projects
from db.transitions.access.projects import archive_project, change_project, create_project
from db.transitions.problems import publish_problem
from service.context import Ctx
from service.errors import NotFound
from service.http.answering import ProblemId, ProjectId, answer, errors, refusals, write_errors
from service.http.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.idempotency import Done, IdempotencyKey, perform
from service.identity.auditing import record_operation
from service.identity.principal import Manages, Operates, Principal, Reads
from service.schemas.access import (
    ProjectAnswer,
    ProjectChangeRequest,
    ProjectPage,
    ProjectRequest,
    VisibilityRequest,
)
from service.schemas.answers import ProblemAnswer

router = APIRouter(tags=["access"])


@router.post(
    "/projects",
    operation_id="create_project",
    status_code=201,
    response_model=ProjectAnswer,
    responses=write_errors(409),
    summary="Make a project",
)
def create(context: Ctx, who: Operates, request: Request, body: ProjectRequest, key: IdempotencyKey = None) -> Response:
    """Create a tenant with problems, runs and keys of its own. Make a key for it next."""

    def work(session: Session) -> Done:
        view = create_project(session, body.name, weight=body.weight, quota=body.quota.quota())
        value = ProjectAnswer.of(view, projects.usage(session, view.id))
        return Done(value=value, status=201, location=f"/api/v1/projects/{view.id}")

    return perform(context, who, request, key, body, work, operation="create_project")


@router.get(
    "/projects",
    operation_id="list_projects",
    response_model=ProjectPage,
    responses=errors(422),
    summary="List projects",
)
def list_all(context: Ctx, who: Reads, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List projects with their usage. The operator sees all, others only their own."""
    after = decode_cursor("projects", cursor)
    with read_session(context.engine) as session:
        if not who.is_operator:
            found = tuple(projects.get(session, id) for id in [who.project_id] if after is None)
        else:
            found = projects.list(session, limit=limit + 1, after=after)
        used = projects.usages(session, [view.id for view in found[:limit]])
        items = tuple(ProjectAnswer.of(view, used[view.id]) for view in found[:limit])
    more = encode_cursor("projects", found[limit - 1].id) if len(found) > limit else None
    return answer(ProjectPage(items=items, next_cursor=more))


@router.get(
    "/projects/{id}",
    operation_id="get_project",
    response_model=ProjectAnswer,
    responses=errors(404),
    summary="Read a project",
)
def get(context: Ctx, who: Reads, id: ProjectId) -> Response:
    """Return its quotas and its usage."""
    with read_session(context.engine) as session, refusals():
        _check_seen(who, id)
        return answer(ProjectAnswer.of(projects.get(session, id), projects.usage(session, id)))


@router.patch(
    "/projects/{id}",
    operation_id="change_project",
    response_model=ProjectAnswer,
    responses=write_errors(404, 409),
    summary="Change a project",
)
def change(context: Ctx, who: Operates, id: ProjectId, body: ProjectChangeRequest) -> Response:
    """Change its name, weight or quota; close it (`archived`: keys are refused, Runs pause) or open it again."""
    with write_session(context.engine) as session, refusals():
        quota = body.quota.quota() if body.quota is not None else None
        view = change_project(session, id, name=body.name, weight=body.weight, quota=quota)
        if body.archived is not None:
            view = archive_project(session, id, archived=body.archived)
        changed = body.model_dump(mode="json", exclude_none=True)
        record_operation(session, who, "change_project", id, project_id=id, **changed)
        return answer(ProjectAnswer.of(view, projects.usage(session, id)))


def _check_seen(who: Principal, project_id: str) -> None:
    if not who.is_operator and project_id != who.project_id:
        raise NotFound("There is no project with this id.")


@router.put(
    "/problems/{id}/visibility",
    operation_id="set_visibility",
    response_model=ProblemAnswer,
    responses=write_errors(404, 409),
    summary="Publish a Problem",
)
def set_visibility(context: Ctx, who: Manages, id: ProblemId, body: VisibilityRequest) -> Response:
    """Make it public: every project may read it, its Champions and their kernels, and start Runs of it.

    Runs, prompts and other Candidates stay private. Once others have Runs of it, it stays public (409).
    """
    with write_session(context.engine) as session, refusals():
        view = publish_problem(session, id, who.project_id, public=body.public)
        record_operation(session, who, "set_visibility", id, public=body.public)
    return answer(ProblemAnswer.of(view, source=True))
