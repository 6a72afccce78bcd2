"""Measure the time of a decision and the size of the database after 10,000 Candidates: `python -m bench.advance [URL]`.

Every Candidate passes through the real transitions: a Proposal with a prompt and a reply of usual length, a build, a
judgement with its samples. Models and judges take no time here. QUICK=1 makes 400.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import sqlalchemy
from sqlalchemy import Engine, text

from db.engine import make_engine, migrate, write_session
from db.queues import JobKind
from db.transitions.advance import advance
from db.views.work import BuildWork, ProposalResult, ProposeWork
from evaluator.types import BuildReport, Candidate, Evaluation, content_hash
from evolution.types import Budget, RunConfig
from tests.db.world import World, candidate_result

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "advance.json"
SAMPLES = 60
CONFIG = RunConfig(proposers=("model",), in_flight=4, stagnation_candidates=10**9)


@dataclass
class Writer:
    """A model that writes files of usual length from real code, each once."""

    rng: random.Random = field(default_factory=lambda: random.Random(0))
    code: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        texts = [path.read_text() for room in ("evaluator", "synthesis") for path in sorted((ROOT / room).glob("*.py"))]
        self.code = [line for text in texts for line in text.splitlines()]
        self.fixed = {name: self.lines(count) for name, count in (("system", 40), ("guide", 45), ("reference", 40))}

    def lines(self, count: int) -> str:
        start = self.rng.randrange(len(self.code) - count)
        return "\n".join(self.code[start : start + count])

    def propose(self, work: ProposeWork) -> ProposalResult:
        if work.parents and work.arm.operator == "tune":
            source = f"{work.parents[0].source}\n# {work.number}"
        else:
            blocks = "".join(f"    BLOCK_{n} = 1\n" for n in range(self.rng.randint(1, 3)))
            words = self.rng.choice(("_mm256_stream", "_mm_prefetch", "tile_size", "omp simd", "m_new", "plain"))
            source = f"# {words}\n{blocks}{self.lines(110)}\n# {work.number}"
        speed = self.rng.lognormvariate(-0.3, 0.3)
        verdict = f"speed={speed:.4f} " if self.rng.random() < 0.7 else "INCORRECT_VALUES#"
        source = f"{verdict}{source.split(' ', 1)[-1] if 'speed=' in source[:8] else source}"
        parents = "".join(f"## The parent\n\n{p.source}\n\n{json.dumps(dict(p.evidence))}\n\n" for p in work.parents)
        lessons = "".join(f"- {lesson.reason} ({lesson.count})\n" for lesson in work.lessons)
        fixed = "".join(f"## The {name}\n\n{said}\n\n" for name, said in self.fixed.items())
        prompt = (
            f"[system]\n{self.fixed['system']}\n\n[user]\n{fixed}{parents}## What failed\n\n{lessons}\n## Your task\n"
        )
        return candidate_result(
            source, prompt=prompt, prompt_template="rewrite@1#0", reply=f"Like this.\n```python\n{source}\n```\n",
            input_tokens=9000, output_tokens=2000, usd=0.01, model="m",
        )  # fmt: skip


class Bench(World):
    """A worker with a judge that returns as many samples as a real one."""

    rng = random.Random(1)

    def build(self, item: BuildWork) -> BuildReport:
        return BuildReport(candidate_hash=item.candidate.hash, signature=content_hash(item.candidate.source))

    def judge(self, c: Candidate) -> Evaluation:
        evaluation = super().judge(Candidate(source=c.source[:200], language=c.language))
        few = evaluation.measurements
        if not few:
            return evaluation
        samples = tuple(self.rng.gauss(20.0, 0.3) for _ in range(SAMPLES))
        more = tuple(
            replace(m, samples_us=samples, baselines=tuple(replace(b, samples_us=samples) for b in m.baselines))
            for m in few
        )
        return replace(evaluation, measurements=more)


def drive(engine: Engine, count: int) -> tuple[list[float], list[float]]:
    """Drive a Run of so many Candidates; return processor and wall seconds of the last tenth's decisions."""
    world = Bench(engine, propose=Writer().propose, promote=lambda work, speedup: False)
    run = world.start(Budget(candidates=count), CONFIG)
    cpu: list[float] = []
    wall: list[float] = []
    while (job := world.claim()) is not None:
        if job.kind != JobKind.ADVANCE:
            world.work(job)
            world.done.clear()
            continue
        began, clock = time.process_time(), time.perf_counter()
        with write_session(engine) as s:
            advance(s, job)
        cpu.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
    assert world.run(run.id).spend.candidates == count
    last = max(50, len(cpu) // 10)
    return cpu[-last:], wall[-last:]


def size_mb(engine: Engine) -> float:
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            return float(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()) / 1e6
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        return float(pages * connection.execute(text("PRAGMA page_size")).scalar_one()) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="an empty database; by default a SQLite file in a temporary folder")
    parser.add_argument("--candidates", type=int, default=400 if os.environ.get("QUICK") else 10_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-advance-"))
    engine = make_engine(options.url or f"sqlite:///{folder / 'bench.db'}")
    try:
        migrate(engine)
        began = time.monotonic()
        cpu, wall = drive(engine, options.candidates)
        found = {
            "database": engine.dialect.name,
            "candidates": options.candidates,
            "advance_cpu_ms": {"p50": _ms(cpu, 50), "p95": _ms(cpu, 95)},
            "advance_wall_ms": {"p50": _ms(wall, 50), "p95": _ms(wall, 95)},
            "database_mb": round(size_mb(engine), 1),
            "took_s": round(time.monotonic() - began, 1),
        }
    finally:
        engine.dispose()
        shutil.rmtree(folder)
    _keep(found)
    print(
        f"advance after {found['candidates']} candidates on {found['database']}: p95 {_ms(cpu, 95)} ms of CPU, "
        f"{_ms(wall, 95)} ms of wall; database {found['database_mb']} MB"
    )
    return 0


def _ms(seconds: list[float], percentile: int) -> float:
    return round(statistics.quantiles(seconds, n=100)[percentile - 1] * 1000, 1)


def _keep(found: dict[str, object]) -> None:
    """Keep one record for each database and count."""
    old = json.loads(RESULT.read_text())["runs"] if RESULT.exists() else []
    same = ("database", "candidates")
    runs = [run for run in old if any(run[key] != found[key] for key in same)] + [found]
    hardware = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    body = {"hardware": hardware, "versions": {"sqlalchemy": sqlalchemy.__version__}, "runs": runs}
    RESULT.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
