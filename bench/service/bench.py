"""Time every page and list of the service on a large database, during writes.

    python -m bench.service [--url postgresql+psycopg://.../db] [--seconds 300] [--clients 10] [--match TEXT]

Start the real service on the database (seeded first if it is empty: see bench.seed), a writer that settles Jobs as
workers do, and clients that wait half a second between requests. Each client takes every GET route in turn, with one of
its filters, at the beginning or deep into its pages, on the largest Run or on others. Print p50 and p99, and write
them, the plans of the slowest statements and the sizes of tables to bench/results/service-DATABASE.json. Exit status 1:
a route was slower than 250 ms at the 99th percentile, or returned an error. QUICK=1: a small SQLite database in a
temporary folder, 15 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import Engine, func, select, text

from bench import machine
from bench.seed.__main__ import create, seed
from bench.seed.plan import SCALES
from bench.service import plans
from bench.service.process import ROOT, Running, serving
from bench.service.routes import Found, Shape, discover
from db.engine import make_engine, migrate, read_session
from db.tables.core import CandidateRow, ChampionRow, EvaluationRow, ProblemRow, ProposalRow, RunRow
from runtime.logs import configure_logging
from runtime.settings import Settings
from service.app import create_app

LIMIT_MS = 250.0
THINK_S = 0.5
WALK_S = 6.0
SKIPPED = ("/api/v1/openapi.json", "/api/v1/runs/{id}/recording")
"""No page and no list: a document that is made once, and a download of as much as a Run holds."""
REDIS_URL = "redis://127.0.0.1:6379/15"


@dataclass
class Sample:
    """The results of one kind of request."""

    ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")


def ids_of(engine: Engine, rng: random.Random) -> dict[str, list[str]]:
    """Return ids to request: the largest Run and its content first, then others."""
    with read_session(engine) as s:
        own = RunRow.project_id == "default"
        sizes = select(RunRow.id).where(own).order_by(RunRow.candidates.desc())
        largest = s.scalars(sizes.limit(1)).one()
        newest = s.scalars(select(RunRow.id).where(own).order_by(RunRow.id.desc()).limit(2)).all()
        champions = s.execute(
            select(ChampionRow.candidate_id, ChampionRow.problem_id)
            .where(ChampionRow.project_id == "default", ChampionRow.standing)
            .order_by(ChampionRow.speedup.desc())
            .limit(5)
        ).all()
        count = s.scalars(select(RunRow.candidates).where(RunRow.id == largest)).one()
        numbers = [rng.randrange(1, count + 1) for _ in range(20)]
        inside = select(CandidateRow.id, CandidateRow.proposal_id).where(
            CandidateRow.run_id == largest, CandidateRow.number.in_(numbers)
        )
        candidates = s.execute(inside).all()
        of_largest = s.scalars(select(RunRow.problem_id).where(RunRow.id == largest)).one()
        evaluations = s.scalars(
            select(EvaluationRow.id).where(EvaluationRow.candidate_id.in_([row.id for row in candidates]))
        ).all()
    return {
        "runs": [largest, *unique(newest, largest)],
        "candidates": [*(row.id for row in candidates), *(row.candidate_id for row in champions)],
        "proposals": [row.proposal_id for row in candidates],
        "problems": unique([of_largest, *(row.problem_id for row in champions)], ""),
        "evaluations": list(evaluations),
        "projects": ["default"],
        "parents": [candidates[0].id],
        "tos": [candidates[1].id],
        "ids": [candidates[0].id],
    }


def unique(values: Sequence[str], excluded: str) -> list[str]:
    """Return the values in their order, once each."""
    return [value for value in dict.fromkeys(values) if value != excluded]


_CURSOR = re.compile(r"[?&](?:amp;)?cursor=([A-Za-z0-9_%=-]+)")
_LINK = re.compile(r'href="(/[^"#]*\?[^"#]*)"')


async def next_cursor(client: httpx2.AsyncClient, url: str) -> str | None:
    """Return the next cursor of a reply: of a list, or from a link of a page."""
    response = await client.get(url)
    if response.status_code != 200:
        return None
    if response.headers.get("content-type", "").startswith("application/json"):
        value = response.json().get("next_cursor")
        return str(value) if value else None
    found = [match for match in _CURSOR.findall(response.text) if match not in url]
    return found[-1] if found else None


async def deep(client: httpx2.AsyncClient, shape: Shape) -> Iterator[Shape]:
    """Return the same list a page on, and as deep as a few seconds of paging reach."""
    url = shape.urls[0]
    glue = "&" if "?" in url else "?"
    full = "" if "limit=" in url or not url.startswith("/api/") else "limit=200&"
    cursors: list[str] = []
    ends_at = time.monotonic() + WALK_S
    while time.monotonic() < ends_at:
        cursor = await next_cursor(client, f"{url}{glue}{full}cursor={cursors[-1]}" if cursors else url)
        if cursor is None or cursor in cursors[-1:]:
            break
        cursors.append(cursor)
    found = []
    if cursors:
        found.append(Shape(name=f"{shape.name} page 2", urls=(f"{url}{glue}cursor={cursors[0]}",)))
    if len(cursors) > 3:
        pages = [cursors[-1], cursors[len(cursors) // 2]]
        urls = tuple(f"{url}{glue}cursor={cursor}" for cursor in pages)
        found.append(Shape(name=f"{shape.name} page {len(cursors)}", urls=urls))
    return iter(found)


async def links(client: httpx2.AsyncClient, shapes: Sequence[Shape]) -> list[Shape]:
    """Return links with a query on the pages themselves: filters, sorts, permalinks."""
    found: dict[str, list[str]] = defaultdict(list)
    for shape in shapes:
        response = await client.get(shape.urls[0])
        for link in _LINK.findall(response.text) if "html" in response.headers.get("content-type", "") else ():
            url = link.replace("&amp;", "&")
            if "cursor=" not in url and not url.startswith("/static"):
                keys = "&".join(sorted(part.partition("=")[0] for part in url.partition("?")[2].split("&")))
                path = re.sub(r"/[a-z]{2,8}_[0-9a-z]{8,}", "/{id}", url.partition("?")[0])
                found[f"link {path}?{keys}"].append(url)
    return [Shape(name=name, urls=tuple(dict.fromkeys(urls))[:4]) for name, urls in found.items()]


async def prepare(url: str, found: Found, match: str) -> list[Shape]:
    """Return the requests to make: discovered ones, their deeper pages, and links of the pages."""
    shapes = [shape for shape in found.shapes if match in shape.name and shape.name not in SKIPPED]
    async with httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
        further: list[Shape] = []
        for shape in shapes:
            if shape.paged:
                further += await deep(client, shape)
        return [*shapes, *further, *await links(client, [s for s in shapes if not s.name.startswith("/api/")])]


async def browse(url: str, shapes: Sequence[Shape], clients: int, seconds: float, seed: int) -> dict[str, Sample]:
    """Browse with clients that pause between requests: each requests every route equally often, one kind at a time."""
    samples: dict[str, Sample] = defaultdict(Sample)
    kinds: dict[str, list[Shape]] = defaultdict(list)
    for shape in shapes:
        kinds[route_of(shape.name)].append(shape)
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        rng = random.Random(seed + number)
        async with httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            await asyncio.sleep(rng.random() * THINK_S)
            while time.monotonic() < ends_at:
                for route in rng.sample(list(kinds), len(kinds)):
                    if time.monotonic() >= ends_at:
                        return
                    shape = rng.choice(kinds[route])
                    await ask(client, shape, samples[shape.name], rng)
                    await asyncio.sleep(THINK_S)

    await asyncio.gather(*(one(number) for number in range(clients)))
    return samples


async def ask(client: httpx2.AsyncClient, shape: Shape, sample: Sample, rng: random.Random) -> None:
    """Make one request, from the first byte sent to the last byte received."""
    # The first address is the largest Run's: it is requested as often as all others together.
    url = shape.urls[0] if rng.random() < 0.5 else rng.choice(shape.urls)
    began = time.perf_counter()
    try:
        response = await client.get(url)
    except httpx2.HTTPError as error:
        sample.failures.append(f"{url}: {type(error).__name__}")
        return
    ms = (time.perf_counter() - began) * 1000
    sample.ms.append(ms)
    sample.slowest = max(sample.slowest, (ms, url))
    if response.status_code >= 400 and response.status_code != 404:
        sample.failures.append(f"{url}: {response.status_code} {response.text[:200]}")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def route_of(name: str) -> str:
    """Return the route of a kind of request, without its filter and page."""
    return name.removeprefix("link ").partition("?")[0].partition(" page ")[0]


def by_route(samples: Mapping[str, Sample]) -> dict[str, Sample]:
    """Combine all filters and pages of a route: enough requests for a percentile."""
    found: dict[str, Sample] = defaultdict(Sample)
    for name, sample in samples.items():
        route = found[route_of(name)]
        route.ms += sample.ms
        route.failures += sample.failures
        route.slowest = max(route.slowest, sample.slowest)
    return found


def table(samples: Mapping[str, Sample]) -> list[dict[str, Any]]:
    """Return one row per kind of request, slowest first."""
    rows = [
        {
            "route": name,
            "requests": len(sample.ms),
            "p50_ms": round(statistics.median(sample.ms), 1),
            "p99_ms": round(percentile(sample.ms, 0.99), 1),
            "slowest": sample.slowest[1],
            "failures": sample.failures[:5],
        }
        for name, sample in samples.items()
        if sample.ms
    ]
    return sorted(rows, key=lambda row: -row["p99_ms"])


def sizes(engine: Engine) -> dict[str, Any]:
    """Return rows and bytes of the database."""
    with read_session(engine) as s:
        rows = {
            model.__tablename__: s.scalar(select(func.count()).select_from(model))
            for model in (RunRow, ProblemRow, CandidateRow, EvaluationRow, ProposalRow)
        }
        if engine.dialect.name == "postgresql":
            query = (
                "SELECT relname, pg_total_relation_size(oid), pg_indexes_size(oid) FROM pg_class "
                "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC LIMIT 12"
            )
            tables = {
                name: {"mib": total >> 20, "indexes_mib": own >> 20} for name, total, own in s.execute(text(query))
            }
            whole = s.scalar(text("SELECT pg_database_size(current_database())"))
        else:
            tables = {}
            whole = s.scalar(text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"))
    return {"rows": rows, "gib": round((whole or 0) / 2**30, 2), "tables": tables}


def measure(engine: Engine, url: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the whole benchmark on one database."""
    app = create_app(Settings(database_url=url), engine=engine, send_nudges=lambda queues: None)
    found = discover(app, ids_of(engine, random.Random(7)))
    with serving(url, folder, WARPWRIGHT_REDIS_URL=REDIS_URL, WARPWRIGHT_LOG_LEVEL="WARNING") as running:
        shapes = asyncio.run(prepare(running.url, found, options.match))
        say(f"{len(shapes)} kinds of request on {len(found.shapes)} routes and filters")
        samples, writes, usage = _load(running, url, shapes, options)
    rows = table(samples)
    for row in rows:
        print(f"{row['p50_ms']:9.1f} {row['p99_ms']:9.1f} ms  {row['requests']:5}  {row['route']}")
    routes = table(by_route(samples))
    print("\nby route, with all its filters and pages:")
    for row in routes:
        print(f"{row['p50_ms']:9.1f} {row['p99_ms']:9.1f} ms  {row['requests']:5}  {row['route']}")
    slow = [row["slowest"] for row in rows[: options.plans]]
    return {
        "command": "python -m bench.service " + " ".join(sys.argv[1:]),
        "machine": machine.describe(),
        "database": engine.dialect.name,
        "size": sizes(engine),
        "clients": options.clients,
        "think_s": THINK_S,
        "seconds": options.seconds,
        "writes_per_second": writes,
        **usage,
        "uncovered": list(found.uncovered),
        "routes": routes,
        "rows": rows,
        "plans": plans.explain(engine, slow),
    }


def _load(
    running: Running, url: str, shapes: Sequence[Shape], options: argparse.Namespace
) -> tuple[dict[str, Sample], float, dict[str, Any]]:
    writer = subprocess.Popen(
        [sys.executable, "-m", "bench.writer", url, "--seconds", f"{options.seconds + 5:g}"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        asyncio.run(browse(running.url, shapes, options.clients, 5.0, 1))  # warm up, not counted
        cpu_s = running.cpu_s
        samples = asyncio.run(browse(running.url, shapes, options.clients, options.seconds, 1000))
        usage = {
            "service_cpu_share": round((running.cpu_s - cpu_s) / options.seconds, 3),
            "service_rss_mib": running.rss_bytes >> 20,
        }
        out, _ = writer.communicate(timeout=60)
        if writer.returncode:
            raise SystemExit(f"the writer broke (exit status {writer.returncode}): nothing was written meanwhile")
    finally:
        writer.kill()
        writer.wait()
    return samples, round(int(out or 0) / (options.seconds + 5), 1), usage


def say(what: str) -> None:
    """Print progress."""
    print(what, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    quick = os.environ.get("QUICK") == "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default=os.environ.get("WARPWRIGHT_BENCH_URL"), help="default: SQLite in a new folder")
    parser.add_argument("--seconds", type=float, default=15.0 if quick else 300.0)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--match", default="", help="only requests with this text in their name")
    parser.add_argument("--plans", type=int, default=8, help="number of the slowest requests to print plans of")
    parser.add_argument("--output", type=Path, help="default: bench/results/service-DATABASE.json")
    return parser.parse_args()


def main() -> int:
    options = parse()
    configure_logging("WARNING")
    quick = os.environ.get("QUICK") == "1"
    with tempfile.TemporaryDirectory(prefix="warpwright-bench-") as name:
        folder = Path(name)
        url = options.url or f"sqlite:///{folder}/bench.db"
        create(url)
        engine = make_engine(url)
        migrate(engine)
        with read_session(engine) as s:
            empty = s.scalar(select(RunRow.id).limit(1)) is None
        if empty:
            scale = "quick" if quick else "full" if engine.dialect.name == "postgresql" else "sqlite"
            seed(engine, SCALES[scale])
        report = measure(engine, url, options, folder)
        engine.dispose()
    output = options.output or ROOT / "bench" / "results" / f"service-{report['database']}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    rows = report["rows"]
    slow = [row for row in report["routes"] if row["p99_ms"] > LIMIT_MS]
    failed = [failure for row in rows for failure in row["failures"]]
    for line in (*failed[:10], *(f"not covered: {item}" for item in report["uncovered"])):
        print(line)
    print(verdict(report, len(slow), len(failed)))
    return 1 if slow or failed else 0


def verdict(report: Mapping[str, Any], slow: int, failed: int) -> str:
    """Return the figures in one line."""
    rows, routes = report["rows"], report["routes"]
    return (
        f"service: {report['size']['rows']['candidates']} candidates on {report['database']}, {len(routes)} routes, "
        f"{len(rows)} kinds of request, {sum(row['requests'] for row in rows)} requests: "
        f"slowest p99 {routes[0]['p99_ms']} ms ({routes[0]['route']}), {slow} routes over {LIMIT_MS:g} ms, "
        f"{failed} failed, "
        f"{report['writes_per_second']} jobs/s written"
    )
