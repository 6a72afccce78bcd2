"""Workers with a fake judge, on SQLite, or on PostgreSQL and Redis (see tests/support/stacks.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from db.engine import read_session, write_session
from db.repositories import candidates, runs
from db.transitions import problems
from db.transitions import runs as run_writes
from db.views.rows import CandidateView
from evaluator.types import DeviceKind, Problem, Workload
from evolution.types import Budget, Run, RunConfig
from runtime.settings import Settings
from tests.support import fake_judge
from tests.support.stacks import Stack
from workers.context import Context
from workers.loop import work

QUEUES = ("control", "propose", "build", "cpu")


@dataclass
class Shop:
    """A database in a folder, and the workers on it."""

    folder: Path
    environment: dict[str, str]
    contexts: list[Context] = field(default_factory=list)

    def context(self, **changes: object) -> Context:
        values: dict[str, object] = {
            "database_url": self.environment["WARPWRIGHT_DATABASE_URL"],
            "redis_url": "redis://127.0.0.1:1/0",
            "judge_command": fake_judge.COMMAND,
            "replay_dir": self.folder,
            "lease_s": 5.0,
            "heartbeat_s": 0.2,
        }
        made = Context(Settings(**{**values, **changes}))  # type: ignore[arg-type]
        made.nudge = lambda queues: None  # type: ignore[method-assign]
        self.contexts.append(made)
        return made

    def record(self, *sources: str) -> str:
        """The name of a Proposer that replays these sources."""
        (self.folder / "recorded.jsonl").write_text("".join(json.dumps({"source": s}) + "\n" for s in sources))
        return "replay:recorded.jsonl"

    def start(
        self,
        *sources: str,
        reference: str = "class Model: ...",
        candidates: int = 50,
        proposers: tuple[str, ...] = (),
    ) -> Run:
        engine = self.contexts[0].engine if self.contexts else self.context().engine
        problem = Problem(name="p", source=reference, workloads=(Workload(name="small", sizes={"rows": 4}),))
        config = RunConfig(proposers=proposers or (self.record(*sources),), islands=1, in_flight=4)
        with write_session(engine) as s:
            stored = problems.create_problem(s, "default", problem)
            return run_writes.create_run(
                s, "default", stored.id, DeviceKind.CPU, Budget(candidates=candidates), config
            )[0]

    def run(self, run_id: str) -> Run:
        with read_session(self.contexts[0].engine) as s:
            return runs.get(s, run_id)

    def candidates(self, run_id: str) -> tuple[CandidateView, ...]:
        with read_session(self.contexts[0].engine) as s:
            return tuple(candidates.list(s, run_id, limit=200))

    def requests(self) -> list[str]:
        """Return the fake judge's requests, one line each: the operation and the Candidate's source."""
        path = Path(self.environment["FAKE_JUDGE_LOG"])
        return path.read_text().splitlines() if path.exists() else []


def drain(context: Context) -> None:
    """Do everything that is ready, on all queues, until nothing is."""
    while sum(work(context, queue) for queue in QUEUES):
        pass


@pytest.fixture
def shop(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with stack.database(tmp_path) as database_url:
        yield from _shop(database_url, tmp_path, monkeypatch)


def _shop(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    environment = {
        "WARPWRIGHT_DATABASE_URL": database_url,
        "FAKE_JUDGE_LOG": str(tmp_path / "judge.log"),
        "FAKE_JUDGE_ONCE": str(tmp_path / "once"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made = Shop(tmp_path, environment)
    yield made
    for context in made.contexts:
        context.close()
        context.engine.dispose()


@pytest.fixture
def drained() -> Callable[[Context], None]:
    return drain
