"""Measure the processor time of every page and list: the cost of a request, independent of other load.

    python -m bench.service.cpu --url postgresql+psycopg://.../db [--match TEXT] [--times 12] [--deep]

Make one request at a time to the real service, on a database that bench.seed filled, and read the processor time of the
service's process and of the database's. `--deep` adds later pages of lists and the links of pages. The most expensive
come first.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg
from sqlalchemy.engine import make_url

from bench.service.bench import REDIS_URL, SKIPPED, ids_of, prepare
from bench.service.process import serving
from bench.service.routes import Found, Shape, discover
from db.engine import make_engine
from runtime.logs import configure_logging
from runtime.settings import Settings
from service.app import create_app


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds of one kind of request: of the service's processor, of the database's, and on the clock."""

    name: str
    service_ms: float
    database_ms: float
    wall_ms: float
    kib: float


def cpu_ns(pid: int) -> int:
    """Return the processor time of all threads of a process so far."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def backends(url: str) -> list[int]:
    """Return the PostgreSQL processes that serve this database; none for SQLite, which works within the service."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "postgresql":
        return []
    with psycopg.connect(parsed.set(drivername="postgresql").render_as_string(False)) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return [int(row[0]) for row in found]


async def costs(url: str, pid: int, database_url: str, shapes: Sequence[Shape], times: int) -> list[Cost]:
    """Make every kind of request `times` times, its first address as often as all others together."""
    found = []
    rng = random.Random(5)
    async with httpx2.AsyncClient(base_url=url, timeout=120, trust_env=False) as client:
        for shape in shapes:
            urls = [shape.urls[0] if n % 2 else rng.choice(shape.urls) for n in range(times)]
            await client.get(shape.urls[0])
            others = backends(database_url)
            before, database_before = cpu_ns(pid), sum(map(cpu_ns, others))
            walls, sizes = [], []
            for target in urls:
                began = time.perf_counter()
                response = await client.get(target)
                walls.append((time.perf_counter() - began) * 1000)
                sizes.append(len(response.content) / 1024)
            cost = Cost(
                name=shape.name,
                service_ms=(cpu_ns(pid) - before) / 1e6 / times,
                database_ms=(sum(map(cpu_ns, others)) - database_before) / 1e6 / times,
                wall_ms=statistics.median(walls),
                kib=max(sizes),
            )
            found.append(cost)
    return sorted(found, key=lambda cost: -(cost.service_ms + cost.database_ms))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--match", default="", help="only requests with this text in their name")
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--deep", action="store_true", help="also later pages, and the links of pages")
    options = parser.parse_args()
    configure_logging("WARNING")
    engine = make_engine(options.url)
    app = create_app(Settings(database_url=options.url), engine=engine, send_nudges=lambda queues: None)
    found: Found = discover(app, ids_of(engine, random.Random(7)))
    engine.dispose()
    shapes = [shape for shape in found.shapes if options.match in shape.name and shape.name not in SKIPPED]
    with (
        tempfile.TemporaryDirectory(prefix="warpwright-bench-") as folder,
        serving(options.url, Path(folder), WARPWRIGHT_REDIS_URL=REDIS_URL, WARPWRIGHT_LOG_LEVEL="WARNING") as running,
    ):
        if options.deep:
            shapes = asyncio.run(prepare(running.url, found, options.match))
        rows = asyncio.run(costs(running.url, running.pid, options.url, shapes, options.times))
    print("service ms  database ms  wall ms     KiB  request")
    for row in rows:
        print(f"{row.service_ms:10.1f}  {row.database_ms:11.1f}  {row.wall_ms:7.1f}  {row.kib:6.0f}  {row.name}")
    mean = statistics.mean(row.service_ms + row.database_ms for row in rows)
    print(f"service_cpu: {len(rows)} kinds of request, {mean:.1f} ms of processor each on average")
    return 0


if __name__ == "__main__":
    sys.exit(main())
