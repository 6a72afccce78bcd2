"""kill -9 of workers at random moments of a Run: nothing is lost, and nothing is judged into the archive twice."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from db.engine import make_engine, migrate, read_session, write_session
from db.repositories import proposals, runs
from db.transitions import problems
from db.transitions import runs as run_writes
from evaluator.problem import read_problem
from evaluator.types import DeviceKind
from evolution.types import Budget, EndReason, Run, RunConfig
from runtime.nudge import nudge
from tests.support import fake_judge
from tests.support.valkey import valkey
from tests.support.worker import WorkerProcess
from tests.workers.conftest import Shop

KILLS = ("cpu", "propose", "build", "control", "cpu", "cpu", "control", "build", "propose", "cpu")
QUICK_KILLS = KILLS[:4]  # one of each kind
EXAMPLE = Path(__file__).parents[2] / "examples" / "problems" / "rmsnorm_residual.py"
pytestmark = pytest.mark.stack

HURRY = "hurry"
"""The file that says that no kill is to come: what the scripted judge does need not last any longer."""
QUICK = {"WARPWRIGHT_LEASE_S": "2", "WARPWRIGHT_HEARTBEAT_S": "0.3", "WARPWRIGHT_SWEEP_INTERVAL_S": "0.3"}


class Floor:
    """One worker of each kind as a real process."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self.workers = {kind: self._start(kind) for kind in ("control", "propose", "build", "cpu")}

    def _start(self, kind: str) -> WorkerProcess:
        return WorkerProcess(kind, self._environment, self._folder / f"{kind}.log")

    def replace(self, kind: str) -> None:
        """kill -9, then another one."""
        self.workers[kind].kill()
        self.workers[kind] = self._start(kind)

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.process.terminate()
        for worker in self.workers.values():
            worker.stop()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(
        tmp_path,
        {
            "WARPWRIGHT_DATABASE_URL": f"sqlite:///{tmp_path / 'test.db'}",
            "FAKE_JUDGE_LOG": str(tmp_path / "judge.log"),
            "FAKE_JUDGE_HURRY": str(tmp_path / HURRY),
            "WARPWRIGHT_REPLAY_DIR": str(tmp_path),
            "WARPWRIGHT_LOG_FORMAT": "json",
            "WARPWRIGHT_TRACE_AHEAD": "false",  # nothing is traced here; test_serve.py starts what would
            **QUICK,
        },
    )
    engine = make_engine(made.environment["WARPWRIGHT_DATABASE_URL"])
    migrate(engine)
    engine.dispose()
    made.context()
    yield made
    for context in made.contexts:
        context.engine.dispose()


def kill_and_finish(shop: Shop, run: Run, victims: Sequence[str], *, pause_s: float, wait_s: float, seed: int) -> None:
    """Kill workers at random times of the Run, each followed by a new one; then wait for the Run's end."""
    generator = random.Random(seed)
    kills = list(victims)
    generator.shuffle(kills)
    with valkey() as url:
        floor = Floor(shop.folder, {**shop.environment, "WARPWRIGHT_REDIS_URL": url})
        try:
            nudge(url, ["cpu"])
            deadline = time.monotonic() + wait_s
            while kills or not shop.run(run.id).status.ended:
                assert time.monotonic() < deadline, f"kills left: {kills}; {shop.run(run.id)}"
                time.sleep(generator.uniform(0.0, 2 * pause_s) if kills else 0.1)
                if kills:
                    assert not shop.run(run.id).status.ended, f"the run ended before its last kill: {kills}"
                    floor.replace(kills.pop())
                if not kills:
                    (shop.folder / HURRY).touch()
        finally:
            floor.stop()


def check(shop: Shop, run: Run) -> None:
    """Every Proposal has an outcome, every Candidate a Verdict, and nothing is there twice."""
    engine = shop.contexts[0].engine
    with read_session(engine) as s:
        assert all(proposal.outcome is not None for proposal in proposals.list(s, run.id, limit=500))
        assert s.execute(text("SELECT count(*) FROM evaluations WHERE verdict IS NULL")).scalar_one() == 0
        assert s.execute(text("SELECT count(*) FROM jobs WHERE state IN ('ready', 'claimed')")).scalar_one() == 0
        for columns, table in (
            ("candidate_id, kind, ordinal", "evaluations"),
            ("run_id, hash", "candidates"),
            ("run_id, number", "proposals"),
            ("run_id, seq", "events"),
        ):
            doubled = s.execute(text(f"SELECT {columns} FROM {table} GROUP BY {columns} HAVING count(*) > 1")).all()
            assert not doubled, (table, doubled)
        settled = s.execute(
            text("SELECT data FROM events WHERE run_id = :run AND kind = 'evaluation.settled'"), {"run": run.id}
        ).all()
        judged = s.execute(text("SELECT count(*) FROM evaluations WHERE run_id = :run"), {"run": run.id}).scalar_one()
        assert len(settled) == judged
        last = s.execute(text("SELECT max(seq), count(*) FROM events WHERE run_id = :run"), {"run": run.id}).one()
        assert last[0] == last[1] == runs.get(s, run.id).last_seq


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victims", [QUICK_KILLS, pytest.param(KILLS, marks=pytest.mark.soak)], ids=["four", "ten"])
def test_kills_with_a_scripted_judge(shop: Shop, victims: Sequence[str]) -> None:
    count = 4 * len(victims)
    shop.environment["WARPWRIGHT_JUDGE_COMMAND"] = fake_judge.COMMAND
    sources = [f"speed={1 + i / 100:.2f} sleep=0.4" for i in range(count)]
    run = shop.start(*sources, candidates=count)
    kill_and_finish(shop, run, victims, pause_s=1.2, wait_s=200.0, seed=random.SystemRandom().randrange(10**6))
    check(shop, run)
    found = shop.candidates(run.id)
    assert len(found) == count
    for lost in (
        c for c in found if c.verdict != "PASSED"
    ):  # three kills may hit the same Job: the cap ends it, in words
        assert lost.verdict == "INTERNAL_ERROR"
        assert "stopped responding on attempt 3" in lost.reason
    best = max(found, key=lambda c: c.speedup.value if c.speedup else 0.0)
    assert shop.run(run.id).champion_id == best.id


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_ten_kills_with_the_real_judge(shop: Shop) -> None:
    problem = read_problem(EXAMPLE.read_text(encoding="utf-8"), "rmsnorm_residual")
    with write_session(shop.contexts[0].engine) as s:
        stored = problems.create_problem(s, "default", problem)
        budget, config = Budget(candidates=12, wall_s=1200.0), RunConfig(proposers=("synthesiser",))
        run = run_writes.create_run(s, "default", stored.id, DeviceKind.CPU, budget, config)[0]
    kill_and_finish(shop, run, KILLS, pause_s=12.0, wait_s=1300.0, seed=random.SystemRandom().randrange(10**6))
    check(shop, run)
    assert shop.run(run.id).end_reason is not EndReason.INTERNAL_ERROR
