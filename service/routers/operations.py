"""For those who run the service: alive, ready, metrics."""

from __future__ import annotations

import redis
from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

import db.engine
from db.errors import DbError
from service.answering import answer, errors
from service.context import Context, Ctx
from service.metrics import CONTENT_TYPE
from service.principal import Operates
from service.schemas.answers import Health

router = APIRouter(tags=["operations"])


@router.get("/healthz", operation_id="get_health", response_model=Health, summary="Is the process alive?")
def health() -> Response:
    """Answers as long as the process can answer at all."""
    return answer(Health(status="ok", checks={}), headers={"Cache-Control": "no-store"})


@router.get(
    "/readyz",
    operation_id="get_readiness",
    response_model=Health,
    responses={503: {"description": "Something that is needed is not there; `checks` says what.", "model": Health}},
    summary="Can it do its work?",
)
def readiness(context: Ctx) -> Response:
    """Tries the database (reachable, and at the right revision) and the broker."""
    checks = {"database": _database(context), "broker": _broker(context)}
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
    """Requests, latency and open streams of this process."""
    return Response(context.metrics.render(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


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
