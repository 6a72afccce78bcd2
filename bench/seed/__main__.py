"""Fill an empty database from a fixed seed: `python -m bench.seed URL [--scale full|sqlite|quick]`.

    python -m bench.seed postgresql+psycopg://postgres@127.0.0.1/warpwright_bench
    python -m bench.seed sqlite:////tmp/bench.db

The database is created if it is missing, and migrated. By default PostgreSQL gets 1,000,000 Candidates and SQLite
100,000; QUICK=1 makes 5,000. On PostgreSQL the role must be a superuser (foreign keys are not checked meanwhile).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from contextlib import suppress

import psycopg
from psycopg import sql
from sqlalchemy import Engine, func, select
from sqlalchemy.engine import make_url

from bench.seed import derived
from bench.seed.load import Loader, Row, SeedError
from bench.seed.plan import SCALES, RunPlan, Scale, plan
from bench.seed.rows import AGE_DAYS, CANDIDATE, DAY_MS, MILESTONE, RUN, SAMPLE, TEXT, World, stamp
from bench.seed.sources import EXPRESSIONS, reference
from db.engine import make_engine, migrate, read_session
from db.tables.core import RunRow
from evaluator.schema import to_json
from evaluator.screening.family import family_of
from evaluator.types import Problem, Workload

BATCH = 20_000
NAMES = tuple(EXPRESSIONS)


def create(url: str) -> None:
    """Create a PostgreSQL database if there is none."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "postgresql" or parsed.database is None:
        return
    server = parsed.set(drivername="postgresql", database="postgres").render_as_string(False)
    with psycopg.connect(server, autocommit=True) as connection, suppress(psycopg.errors.DuplicateDatabase):
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(parsed.database)))


def seed(engine: Engine, scale: Scale) -> int:
    """Fill a migrated, empty database; return its size in bytes. Raise SeedError."""
    with read_session(engine) as s:
        if s.scalar(select(func.count()).select_from(RunRow)):
            raise SeedError("the database has Runs in it already: give an empty one")
    rng = random.Random(20261121)
    loader = Loader(engine)
    loader.drop_indexes()
    now_ms = time.time_ns() // 1_000_000
    projects = _projects(loader, scale, now_ms)
    runs = plan(scale, rng)
    owners = {run.problem: run.project for run in runs}
    problems = _problems(loader, scale, projects, owners, now_ms)
    world = World(loader, rng, now_ms, problems, projects, scale.runs)
    _runs(loader, world, runs)
    columns = (
        "id", "project_id", "problem_id", "run_id", "candidate_id", "evaluation_id", "device_kind", "device_name",
        "speedup", "against_fastest", "fastest_baseline", "promoted_at", "standing",
    )  # fmt: skip
    newest = {(row[2], row[6]): row[0] for row in world.champions}
    loader.add("champions", columns, ((*row, newest[row[2], row[6]] == row[0]) for row in world.champions))
    say("candidates")
    derived.fill_derived(loader)
    say("what follows from them")
    size = loader.finish()
    say("indexes")
    return size


def _projects(loader: Loader, scale: Scale, now_ms: int) -> list[str]:
    ids = ["default", *(f"proj_{stamp(now_ms)}{number:016x}" for number in range(1, scale.projects))]
    moment = loader.moment(now_ms - AGE_DAYS * DAY_MS)
    loader.add("projects", ("id", "name", "created_at"), [(id, f"team {n}", moment) for n, id in enumerate(ids) if n])
    return ids


def _problems(loader: Loader, scale: Scale, projects: list[str], owners: dict[int, int], now_ms: int) -> list[str]:
    ids, rows, admissions, baselines = [], [], [], []
    for number in range(scale.problems):
        ms = now_ms - AGE_DAYS * DAY_MS - (scale.problems - number) * 1000
        name = f"{NAMES[number % len(NAMES)]} {number}"
        workloads = (Workload(name="decode", sizes={"rows": 4}), Workload(name="prefill", sizes={"rows": 64}))
        problem = Problem(name=name, source=reference(name, number), workloads=workloads)
        id, moment = f"prob_{stamp(ms)}{number:016x}", loader.moment(ms)
        project = projects[owners.get(number, 0)]
        body, family = json.dumps(to_json(problem)), str(family_of(problem.source))
        rows.append((id, project, problem.hash, name, f"{name} over rows.", body, 1, family, moment))
        device = "cuda" if number % 3 else "cpu"
        admissions.append((f"adm_{id[5:]}", id, device, "accepted", 1, moment))
        baselines.append((f"base_{id[5:]}", id, device, "timed", 1, moment))
        ids.append(id)
    columns = ("id", "project_id", "hash", "name", "description", "body", "schema_version", "family", "created_at")
    loader.add("problems", columns, rows)
    settled = ("id", "problem_id", "device_kind", "state", "schema_version", "created_at")
    loader.add("admissions", settled, admissions)
    loader.add("baselines", settled, baselines)
    return ids


def _runs(loader: Loader, world: World, plans: list[RunPlan]) -> None:
    batch: dict[str, list[Row]] = {"runs": [], "candidates": [], "samples": [], "milestones": [], "texts": []}
    columns = {"runs": RUN, "candidates": CANDIDATE, "samples": SAMPLE, "milestones": MILESTONE, "texts": TEXT}
    for number, item in enumerate(plans):
        made = world.make(item)
        batch["runs"].append(made.run)
        batch["candidates"] += made.candidates
        batch["samples"] += made.samples
        batch["milestones"] += made.milestones
        batch["texts"] += made.texts
        if len(batch["candidates"]) >= BATCH or number == len(plans) - 1:
            for table, rows in batch.items():
                loader.add(table, columns[table], rows)
                rows.clear()


_began = time.monotonic()


def say(what: str) -> None:
    """Print progress."""
    print(f"{time.monotonic() - _began:7.1f} s  {what}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--scale", choices=sorted(SCALES))
    options = parser.parse_args()
    usual = "sqlite" if options.url.startswith("sqlite") else "full"
    name = options.scale or ("quick" if os.environ.get("QUICK") == "1" else usual)
    create(options.url)
    engine = make_engine(options.url)
    migrate(engine)
    try:
        size = seed(engine, SCALES[name])
    except SeedError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        engine.dispose()
    seconds = time.monotonic() - _began
    made = f"{SCALES[name].candidates} candidates, {SCALES[name].runs} runs"
    print(f"seed: {made}, {size / 2**30:.2f} GiB with its indexes, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
