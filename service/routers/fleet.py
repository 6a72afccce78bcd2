"""The fleet: devices, workers and queues; the available models, and the spend."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from db.engine import read_session
from db.repositories import spending
from db.repositories.work import devices, fleet, queue
from service.context import Ctx
from service.http.answering import answer, errors
from service.identity.principal import Reads
from service.schemas.answers import DevicePage, ModelAnswer, ModelPage, QueuePage, SpendPage, WorkerPage

router = APIRouter()


@router.get(
    "/devices",
    operation_id="list_devices",
    tags=["fleet"],
    response_model=DevicePage,
    responses=errors(),
    summary="List devices",
)
def list_devices(context: Ctx, _: Reads) -> Response:
    """List every registered device with its environment and missing isolation, newest seen first."""
    with read_session(context.engine) as session:
        found = devices.list(session)
    return answer(DevicePage(items=tuple(found), next_cursor=None))


@router.get(
    "/queues",
    operation_id="list_queues",
    tags=["fleet"],
    response_model=QueuePage,
    responses=errors(),
    summary="List queues",
)
def list_queues(context: Ctx, _: Reads) -> Response:
    """Count waiting and claimed work over all projects. An empty queue is left out."""
    with read_session(context.engine) as session:
        return answer(QueuePage(items=queue.depths(session), next_cursor=None))


@router.get(
    "/workers",
    operation_id="list_workers",
    tags=["fleet"],
    response_model=WorkerPage,
    responses=errors(),
    summary="List workers",
)
def list_workers(context: Ctx, _: Reads) -> Response:
    """List the workers that hold a job, longest-running first, then those that wait. A job's owner is not shown."""
    with read_session(context.engine) as session:
        return answer(WorkerPage(items=fleet.workers(session), next_cursor=None))


@router.get(
    "/models",
    operation_id="list_models",
    tags=["models"],
    response_model=ModelPage,
    responses=errors(),
    summary="List models",
)
def list_models(context: Ctx, _: Reads) -> Response:
    """List the operator's language models, with their prices in dollars. Their addresses are not shown."""
    items = tuple(
        ModelAnswer(
            name=endpoint.name,
            model=endpoint.model,
            usd_per_million_input=endpoint.usd_per_million_input,
            usd_per_million_output=endpoint.usd_per_million_output,
            priced=endpoint.priced,
            context_tokens=endpoint.context_tokens,
            max_output_tokens=endpoint.max_output_tokens,
        )
        for endpoint in context.settings.models
    )
    return answer(ModelPage(items=items, next_cursor=None))


@router.get(
    "/spend",
    operation_id="list_spend",
    tags=["models"],
    response_model=SpendPage,
    responses=errors(),
    summary="Read the spend",
)
def list_spend(
    context: Ctx,
    who: Reads,
    by: Annotated[
        Literal["model", "project"], Query(description="`project`: all projects for an operator, else one's own.")
    ] = "model",
) -> Response:
    """List dollars, tokens and device seconds; the most dollars first."""
    with read_session(context.engine) as session:
        if by == "model":
            found = spending.by_model(session, who.project_id)
        else:
            found = spending.by_project(session, None if who.is_operator else who.project_id)
    return answer(SpendPage(items=found, next_cursor=None))
