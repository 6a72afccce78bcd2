"""The metrics at /metrics in Prometheus' format: this process's requests and streams, and those of the database."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy import Engine
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.database_metrics import DatabaseMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One application's counters, in a registry of their own so that two applications can share a process."""

    def __init__(self, engine: Engine) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(DatabaseMetrics(engine))
        self.requests = Counter(
            "warpwright_http_requests_total",
            "Requests answered, by operation and status.",
            ["method", "operation", "status"],
            registry=self.registry,
        )
        self.latency = Histogram(
            "warpwright_http_request_seconds",
            "Seconds from request to the answer's first byte, by operation.",
            ["method", "operation"],
            registry=self.registry,
        )
        self.event_lag = Histogram(
            "warpwright_event_lag_seconds",
            "Seconds from the writing of an event until this process handed it to its followers.",
            registry=self.registry,
        )
        self.followers = Gauge("warpwright_event_followers", "Open event streams.", registry=self.registry)

    def watch_followers(self, count: Callable[[], float]) -> None:
        """Read the number of open streams from `count` at every scrape."""
        self.followers.set_function(count)

    def render(self) -> bytes:
        """Return every metric, for one scrape."""
        return generate_latest(self.registry)


class MeasureRequests:
    """Counts every request by its operation's name, never by its path (paths are unbounded and hostile)."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"], time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, watch)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        operation = getattr(route, "operation_id", None) or getattr(route, "path", None) or "unmatched"
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        self.metrics.requests.labels(method, operation, str(status)).inc()
        self.metrics.latency.labels(method, operation).observe(seconds)
