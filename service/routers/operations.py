"""Endpoints for operators: alive, ready, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio.to_thread
import redis
from anyio import CapacityLimiter
from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

import db.engine
from db.errors import DbError
from service.context import Context, Ctx
from service.http.answering import answer, errors
from service.identity.principal import Operates
from service.metrics import CONTENT_TYPE
from service.schemas.answers import Health

router = APIRouter(tags=["operations"])


READY_S = 4.0
"""A longer check has failed: its caller (a load balancer) does not wait longer either."""
_limiter = CapacityLimiter(2)  # own threads: those of the routes may all be waiting for the database


@router.get("/healthz", operation_id="get_health", response_model=Health, summary="Check that the process is alive")
async def health() -> Response:
    """Answer while the process runs: no thread, no database, no broker is needed."""
    return answer(Health(status="ok", checks={}), headers={"Cache-Control": "no-store"})


@router.get(
    "/readyz",
    operation_id="get_readiness",
    response_model=Health,
    responses={503: {"description": "A dependency is missing; `checks` names it.", "model": Health}},
    summary="Check that it is ready",
)
async def readiness(context: Ctx) -> Response:
    """Check the database (reachable, at the right revision), the broker, and the tailer of event streams."""
    database, broker = await asyncio.gather(_in_time(_database, context), _in_time(_broker, context))
    tailer = "ok" if context.hub.tailing else "stopped: event streams stand still; restart this process"
    checks = {"database": database, "broker": broker, "events": tailer}
    good = all(value == "ok" for value in checks.values())
    return answer(
        Health(status="ok" if good else "unavailable", checks=checks),
        status=200 if good else 503,
        headers={"Cache-Control": "no-store"},
    )


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=Response,
    responses={
        **errors(),
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text."},
    },
    summary="Metrics for Prometheus",
)
def metrics(context: Ctx, _: Operates) -> Response:
    """Return the whole installation's queue, verdicts, stages, spend and devices, and this process's requests."""
    return Response(context.metrics.render(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


async def _in_time(check: Callable[[Context], str], context: Context) -> str:
    try:
        async with asyncio.timeout(READY_S):
            return await anyio.to_thread.run_sync(check, context, limiter=_limiter, abandon_on_cancel=True)
    except TimeoutError:
        return f"did not answer in {READY_S:g} seconds"


def _database(context: Context) -> str:
    try:
        db.engine.check(context.engine)
    except DbError:
        return "the schema is not at the revision that this version needs: run python -m db migrate"
    except SQLAlchemyError:
        return "not reachable"
    return "ok"


def _broker(context: Context) -> str:
    client = redis.Redis.from_url(context.settings.redis_url, socket_connect_timeout=1.0, socket_timeout=1.0)
    try:
        client.ping()
    except redis.RedisError:
        return "not reachable: work is still stored, and starts once it is back"
    finally:
        client.close()
    return "ok"
