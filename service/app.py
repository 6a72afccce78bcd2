"""The application: routes, middleware, and resources with its lifetime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from sqlalchemy import Engine
from starlette.middleware import Middleware

from db.engine import make_engine, read_session
from db.repositories import events
from db.repositories.access import keys
from db.views.rows import EventView
from runtime.nudge import nudge
from runtime.settings import Settings
from service import openapi
from service.agents.server import AgentServer
from service.context import Context
from service.exposure import is_keyless
from service.http import handlers
from service.http.known_parameters import known_parameters
from service.http.limits import GUESSES, Limits, TokenBuckets
from service.identity.authentication import Authenticator
from service.metrics import MeasureRequests, Metrics
from service.middleware.access import LOOPBACK_HOSTS, AccessControl, host_name
from service.middleware.authenticate import Authenticate
from service.middleware.body_limit import BodyLimit
from service.middleware.boundary import ErrorBoundary
from service.middleware.csrf import CsrfGuard
from service.middleware.headers import SecurityHeaders
from service.middleware.request_log import RequestLog
from service.pages import api as api_page
from service.pages import candidates as candidate_pages
from service.pages import compare, fleet, login, submit
from service.pages import leaderboard as leaderboard_pages
from service.pages import problems as problem_pages
from service.pages import runs as run_pages
from service.rendering.static import ASSETS, Assets
from service.routers import (
    bundles,
    candidates,
    downloads,
    evaluations,
    leaderboard,
    operations,
    problems,
    projects,
    proposals,
    runs,
    search_state,
    steering,
)
from service.routers import events as event_routes
from service.routers import fleet as fleet_routes
from service.routers import keys as key_routes
from service.streams.hub import PAGE, EventHub, ReadEvents
from service.streams.revocation import end_revoked

API = "/api/v1"
BODY_DEADLINE_S = 30.0
REVOCATION_S = 2.0


def create_app(
    settings: Settings,
    *,
    engine: Engine | None = None,
    send_nudges: Callable[[Iterable[str]], Any] | None = None,
    keyless: bool | None = None,
    keep_alive_s: float = 15.0,
    stream_lifetime_s: float = 3600.0,
) -> FastAPI:
    """Build the service for `settings`. The database must be migrated. The named parameters are for tests."""
    own_engine = engine is None
    database = engine or make_engine(settings.database_url)
    metrics = Metrics(database)
    hub = EventHub(_reader(database), poll_s=settings.event_poll_s, observe_lag_s=metrics.event_lag.observe)
    metrics.watch_followers(lambda: hub.followers)
    context = Context(
        settings=settings,
        authenticator=Authenticator(
            database,
            bootstrap=settings.api_key,
            keyless=is_keyless(settings) if keyless is None else keyless,
            session_lifetime=timedelta(hours=settings.session_hours),
        ),
        limits=_limits(settings),
        engine=database,
        hub=hub,
        metrics=metrics,
        nudge=send_nudges or (lambda queues: nudge(settings.redis_url, queues, expires_s=settings.nudge_expires_s)),
        keep_alive_s=keep_alive_s,
        stream_lifetime_s=stream_lifetime_s,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        hub.start()
        revocation = asyncio.create_task(end_revoked(hub, _ended_reader(database), every_s=REVOCATION_S))
        try:
            async with agents.running():
                yield
        finally:
            revocation.cancel()
            await hub.stop()
            if own_engine:
                database.dispose()

    app = FastAPI(
        title="Warpwright",
        lifespan=lifespan,
        middleware=_middleware(context),
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # our own is pages/api.py: the scripts of FastAPI's come from another origin
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    agents = AgentServer(app, context)
    _routes(app, agents)
    handlers.install(app)
    app.openapi = lambda: openapi.build(app)  # type: ignore[method-assign]
    return app


def _reader(engine: Engine) -> ReadEvents:
    def read(tails: Mapping[str, int]) -> Sequence[EventView]:
        with read_session(engine) as session:
            return events.since(session, tails, PAGE)

    return read


def _ended_reader(engine: Engine) -> Callable[[Collection[str]], set[str]]:
    def read(credentials: Collection[str]) -> set[str]:
        with read_session(engine) as session:
            return keys.ended(session, credentials)

    return read


def _limits(settings: Settings) -> Limits:
    return Limits(
        addresses=TokenBuckets(settings.requests_per_s, settings.request_burst),
        keys=TokenBuckets(settings.requests_per_s, settings.request_burst),
        guesses=TokenBuckets(settings.wrong_keys_per_minute / 60, GUESSES),
    )


def _middleware(context: Context) -> list[Middleware]:
    settings = context.settings
    hosts = {host_name(host) for host in settings.allowed_hosts} | LOOPBACK_HOSTS
    return [
        Middleware(RequestLog),
        Middleware(SecurityHeaders),
        Middleware(MeasureRequests, metrics=context.metrics),
        Middleware(ErrorBoundary),
        Middleware(AccessControl, hosts=hosts),
        Middleware(
            Authenticate,
            authenticator=context.authenticator,
            limits=context.limits,
            trusted=settings.trusted_proxies,
        ),
        Middleware(BodyLimit, max_bytes=settings.max_request_bytes, deadline_s=BODY_DEADLINE_S),
        Middleware(CsrfGuard),
    ]


def _routes(app: FastAPI, agents: AgentServer) -> None:
    app.router.routes.append(agents.route)
    api = APIRouter(prefix=API, dependencies=[Depends(known_parameters)])
    for module in (
        problems,
        runs,
        steering,
        event_routes,
        candidates,
        evaluations,
        proposals,
        search_state,
        leaderboard,
        fleet_routes,
        bundles,
        downloads,
        key_routes,
        projects,
    ):
        api.include_router(module.router)
    app.include_router(api)
    app.include_router(operations.router)
    pages = (leaderboard_pages, run_pages, candidate_pages, problem_pages, compare, fleet, submit, login, api_page)
    for page in pages:
        _answer_head(page.router)
        app.include_router(page.router, include_in_schema=False)
    app.mount("/static", Assets(directory=ASSETS), name="static")


def _answer_head(router: APIRouter) -> None:
    """Let every page that answers GET answer HEAD too; the server leaves out the body."""
    for route in router.routes:
        if isinstance(route, APIRoute) and route.methods and "GET" in route.methods:
            route.methods.add("HEAD")
