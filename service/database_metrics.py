"""Metrics of the whole installation, the same from every process: read from the database at every scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from db.engine import read_session
from db.repositories.work.operations import Operations, picture
from db.tables.counters import BUCKETS_S, Labels

_COUNTERS = (
    ("evaluations", "Evaluations settled, by result.", ("kind", "stage", "verdict")),
    ("proposals", "Proposals settled, by outcome.", ("proposer", "model", "outcome")),
    ("spend_usd", "Dollars spent on models.", ("proposer", "model")),
    ("tokens", "Tokens sent to models and received.", ("proposer", "model", "direction")),
    ("device_seconds", "Seconds of device time used by judging.", ("kind", "device")),
)


class DatabaseMetrics(Collector):
    """Export `picture`. Without a database only `warpwright_database_up 0` is exported."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> Iterable[Metric]:
        """Return nothing: reading the database at registration would be too early."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return every metric, for one scrape."""
        yield from pool(self._engine)
        try:
            with read_session(self._engine) as session:
                seen = picture(session)
        except SQLAlchemyError:
            yield _gauge("database_up", "1 while the database answers.", (), {(): 0})
            return
        yield _gauge("database_up", "1 while the database answers.", (), {(): 1})
        yield from _present(seen)
        for name, text, labels in _COUNTERS:
            yield _counter(name, text, labels, seen.counters.get(name, {}))
        yield _histogram(seen.counters)


def pool(engine: Engine) -> Iterator[Metric]:
    """Return the state of this process's connection pool."""
    found = engine.pool
    if isinstance(found, QueuePool):
        values = {("in_use",): found.checkedout(), ("idle",): found.checkedin()}
        yield _gauge("database_connections", "Database connections of this process.", ("state",), values)


def _present(seen: Operations) -> Iterator[Metric]:
    jobs = {(q.queue, state): getattr(q, state) for q in seen.queues for state in ("ready", "held", "claimed")}
    yield _gauge("jobs", "Jobs waiting or in work.", ("queue", "state"), jobs)
    waits = {(q.queue,): q.oldest_ready_s for q in seen.queues if q.oldest_ready_s is not None}
    yield _gauge("job_oldest_ready_seconds", "Age of the oldest unclaimed Job.", ("queue",), waits)
    yield _gauge("runs", "Runs that have not ended.", ("status",), {(k,): v for k, v in seen.runs.items()})
    yield _gauge("devices", "Devices with a recent heartbeat.", ("kind", "device"), seen.devices)


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"warpwright_{name}", text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(f"warpwright_{name}", text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


def _histogram(counters: Mapping[str, Mapping[Labels, float]]) -> Metric:
    """Return the duration of each stage of judging; buckets are cumulative, as Prometheus requires."""
    family = HistogramMetricFamily("warpwright_stage_seconds", "Seconds of each stage of judging.", labels=("stage",))
    buckets, sums = counters.get("stage_seconds_bucket", {}), counters.get("stage_seconds_sum", {})
    for stage in sorted({key[0] for key in buckets}):
        total, cumulative = 0.0, []
        for bound in (*map(str, BUCKETS_S), "+Inf"):
            total += buckets.get((stage, bound), 0.0)
            cumulative.append((bound, total))
        family.add_metric((stage,), cumulative, sums.get((stage,), 0.0))
    return family
