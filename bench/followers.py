"""Follow events with hundreds of clients on one service process, while events are written and other requests run.

    python -m bench.followers [--url URL] [--followers 500] [--per-second 50] [--seconds 300]

Start the real service. Followers are plain HTTP connections that read the event streams of a few Runs, some from the
beginning and some from a Last-Event-ID; one in ten disconnects at times and resumes. A writer settles Jobs. At the end
every follower's sequence must be complete: each seq from its first to the last in the database, once and in order.
Print the delay from the writing of an event to its arrival, the requests' latency, and the service's memory over time.
Exit status 1: an event was lost or doubled, a request failed, or memory grew. QUICK=1: 20 seconds, 100 followers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from sqlalchemy import Engine

from bench import machine
from bench.seed.__main__ import create
from bench.service.bench import REDIS_URL, percentile, say
from bench.service.process import ROOT, Running, serving
from db.engine import make_engine, migrate, read_session
from db.repositories import runs

RUNS = 5
GROWTH_LIMIT = 1.10
SETTLE_S = 20.0


@dataclass
class Follower:
    """One connection at a time to one Run's stream, and its received events."""

    run_id: str
    first: int
    restless: bool
    seqs: list[int] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    connections: int = 0
    problem: str = ""

    @property
    def last(self) -> int:
        return self.seqs[-1] if self.seqs else self.first

    async def follow(self, url: str, until: asyncio.Event) -> None:
        """Read until told to stop, and reconnect when the stream ends."""
        host, port = urlsplit(url).hostname or "", urlsplit(url).port
        rng = random.Random(id(self))
        while not until.is_set() and not self.problem:
            patience_s = rng.uniform(5, 20) if self.restless else 3600.0
            reader, writer = await asyncio.open_connection(host, port, limit=2**20)
            self.connections += 1
            try:
                async with asyncio.timeout(patience_s):
                    await self._read(reader, writer, f"{host}:{port}", until)
            except TimeoutError:
                continue  # disconnects, and resumes
            except (OSError, asyncio.IncompleteReadError) as error:
                self.problem = f"{type(error).__name__}: {error}"
            finally:
                writer.close()

    async def _read(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, until: asyncio.Event
    ) -> None:
        head = f"GET /api/v1/runs/{self.run_id}/events HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n"
        writer.write(f"{head}Last-Event-ID: {self.last}\r\n\r\n".encode())
        status = await reader.readline()
        if b" 200 " not in status:
            self.problem = status.decode(errors="replace").strip()
            return
        while (line := await reader.readline()) and not until.is_set():
            if line.startswith(b"data: ") and line[6:7] == b"{":
                self._take(json.loads(line[6:]))

    def _take(self, event: dict[str, Any]) -> None:
        if event["seq"] != self.last + 1:
            self.problem = f"seq {event['seq']} after {self.last}"
        self.seqs.append(event["seq"])
        written = datetime.fromisoformat(event["created_at"])
        self.delays_s.append((datetime.now(UTC) - written).total_seconds())


async def ask(url: str, paths: Sequence[str], per_second: float, seconds: float) -> tuple[list[float], list[str]]:
    """Send requests at a fixed rate, however long replies take; return their seconds and the failures."""
    took: list[float] = []
    failed: list[str] = []
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False, limits=limits) as client:

        async def one(path: str) -> None:
            began = time.perf_counter()
            try:
                response = await client.get(path)
            except httpx2.HTTPError as error:
                failed.append(f"{path}: {type(error).__name__}")
                return
            took.append(time.perf_counter() - began)
            if response.status_code != 200:
                failed.append(f"{path}: {response.status_code}")

        began = time.monotonic()
        tasks: set[asyncio.Task[None]] = set()
        for number in range(int(per_second * seconds)):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            task = asyncio.create_task(one(paths[number % len(paths)]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
    return took, failed


async def watch(running: Running, seconds: float) -> list[int]:
    """Return the service's memory in MiB, forty times over the whole run."""
    found = []
    for _ in range(40):
        found.append(running.rss_bytes >> 20)
        await asyncio.sleep(seconds / 40)
    return found


async def crowd(
    running: Running, engine: Engine, run_ids: Sequence[str], options: argparse.Namespace
) -> dict[str, Any]:
    """Run followers, requests and memory samples at once; then wait for events under way to arrive."""
    until = asyncio.Event()
    followers = [
        Follower(run_id=run_ids[number % len(run_ids)], first=number % 2, restless=number % 10 == 9)
        for number in range(options.followers)
    ]
    tasks = [asyncio.create_task(follower.follow(running.url, until)) for follower in followers]
    run_id = run_ids[0]
    paths = [
        f"/api/v1/runs/{run_id}",
        f"/api/v1/runs/{run_id}/candidates?limit=20",
        "/api/v1/runs?limit=20",
        "/healthz",
    ]
    cpu_s, began = running.cpu_s, time.monotonic()
    (took, failed), memory = await asyncio.gather(
        ask(running.url, paths, options.per_second, options.seconds), watch(running, options.seconds)
    )
    cpu_share = (running.cpu_s - cpu_s) / (time.monotonic() - began)
    last = await caught_up(engine, run_ids, followers)
    until.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return _figures(followers, last, took, failed, memory) | {"service_cpu_share": round(cpu_share, 3)}


async def caught_up(engine: Engine, run_ids: Sequence[str], followers: Sequence[Follower]) -> dict[str, int]:
    """Wait until all followers are up to date, for a limited time; return the last seq of each Run."""
    ends_at = time.monotonic() + SETTLE_S
    while True:
        last = await asyncio.to_thread(last_seqs, engine, run_ids)
        behind = [f for f in followers if f.last < last[f.run_id]]
        if not behind or time.monotonic() > ends_at:
            return last
        await asyncio.sleep(0.5)


def last_seqs(engine: Engine, run_ids: Sequence[str]) -> dict[str, int]:
    """Return the last seq of each Run in the database."""
    with read_session(engine) as s:
        return {id: runs.get(s, id).last_seq for id in run_ids}


def _figures(
    followers: Sequence[Follower], last: dict[str, int], took: Sequence[float], failed: Sequence[str], memory: list[int]
) -> dict[str, Any]:
    complete = [f for f in followers if f.seqs == list(range(f.first + 1, last[f.run_id] + 1))]
    # Events from before a follower connected are replayed, not delivered.
    delays = [delay for f in followers for delay in f.delays_s[-max(1, len(f.delays_s) * 9 // 10) :]]
    fifth = max(1, len(memory) // 5)
    early, late = sorted(memory[fifth : 2 * fifth])[fifth // 2], sorted(memory[-fifth:])[fifth // 2]
    return {
        "followers": len(followers),
        "complete": len(complete),
        "problems": sorted({f.problem for f in followers if f.problem})[:10],
        "connections": sum(f.connections for f in followers),
        "events_written": sum(last.values()),
        "events_delivered": sum(len(f.seqs) for f in followers),
        "delay_p50_s": round(percentile(delays, 0.5), 3),
        "delay_p99_s": round(percentile(delays, 0.99), 3),
        "requests": len(took),
        "requests_failed": list(failed)[:10],
        "request_p50_ms": round(percentile(took, 0.5) * 1000, 1),
        "request_p99_ms": round(percentile(took, 0.99) * 1000, 1),
        "rss_mib": memory,
        "rss_early_mib": early,
        "rss_late_mib": late,
    }


def measure(engine: Engine, url: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the whole benchmark on one database."""
    run_ids = json.loads(
        subprocess.run(
            [sys.executable, "-m", "bench.writer", url, "--start", str(RUNS)],
            cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=120,
        ).stdout
    )  # fmt: skip
    with serving(url, folder, WARPWRIGHT_REDIS_URL=REDIS_URL, WARPWRIGHT_LOG_LEVEL="WARNING") as running:
        writer = subprocess.Popen(
            [sys.executable, "-m", "bench.writer", url, "--seconds", f"{options.seconds:g}", "--on", *run_ids,
             "--per-second", str(options.writes)],
            cwd=ROOT, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            found = asyncio.run(crowd(running, engine, run_ids, options))
        finally:
            writer.terminate()
            writer.wait()
    return {
        "command": "python -m bench.followers " + " ".join(sys.argv[1:]),
        "machine": machine.describe(),
        "database": engine.dialect.name,
        "seconds": options.seconds,
        **found,
    }


def parse() -> argparse.Namespace:
    quick = os.environ.get("QUICK") == "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default=os.environ.get("WARPWRIGHT_BENCH_URL"), help="default: SQLite in a new folder")
    parser.add_argument("--followers", type=int, default=100 if quick else 500)
    parser.add_argument("--per-second", type=float, default=50.0, help="requests per second in addition to the streams")
    parser.add_argument(
        "--writes", type=float, default=6.0, help="Jobs settled per second; each writes one to three events"
    )
    parser.add_argument("--seconds", type=float, default=20.0 if quick else 300.0)
    parser.add_argument("--output", type=Path, help="default: bench/results/followers-DATABASE.json")
    return parser.parse_args()


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="warpwright-bench-") as name:
        url = options.url or f"sqlite:///{name}/bench.db"
        create(url)
        engine = make_engine(url)
        migrate(engine)
        report = measure(engine, url, options, Path(name))
        engine.dispose()
    output = options.output or ROOT / "bench" / "results" / f"followers-{report['database']}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    grew = report["rss_late_mib"] > report["rss_early_mib"] * GROWTH_LIMIT
    for problem in (*report["problems"], *report["requests_failed"]):
        say(problem)
    print(verdict(report))
    return 1 if grew or report["complete"] < report["followers"] or report["requests_failed"] else 0


def verdict(report: dict[str, Any]) -> str:
    """Return the figures in one line."""
    return (
        f"followers: {report['complete']} of {report['followers']} sequences complete, "
        f"{report['events_written']} events written, {report['events_delivered']} delivered, "
        f"delay p50 {report['delay_p50_s']} s p99 {report['delay_p99_s']} s; {report['requests']} requests, "
        f"p99 {report['request_p99_ms']} ms, {len(report['requests_failed'])} failed; "
        f"memory {report['rss_early_mib']} to {report['rss_late_mib']} MiB; {report['service_cpu_share']:.0%} of a core"
    )


if __name__ == "__main__":
    sys.exit(main())
