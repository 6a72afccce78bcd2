"""Real Celery workers on a private Valkey or Redis: killed in mid-job, restarted, stopped."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from db.engine import write_session
from db.transitions.work.jobs import sweep
from evaluator.types import Verdict
from tests.support import fake_judge
from tests.support.stacks import Stack
from tests.support.valkey import valkey
from tests.support.worker import WorkerProcess
from tests.workers.conftest import Shop

WAIT_S = 60.0

pytestmark = pytest.mark.stack


def until(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.02)


class Floor:
    """Workers of a shop as processes."""

    def __init__(self, shop: Shop, url: str) -> None:
        self.shop = shop
        self.workers: dict[str, WorkerProcess] = {}
        self.environment = {
            **shop.environment,
            "WARPWRIGHT_REDIS_URL": url,
            "WARPWRIGHT_JUDGE_COMMAND": fake_judge.COMMAND,
            "FAKE_JUDGE_HURRY": str(shop.folder / "hurry"),
            "WARPWRIGHT_REPLAY_DIR": str(shop.folder),
            "WARPWRIGHT_LEASE_S": "2",
            "WARPWRIGHT_HEARTBEAT_S": "0.3",
            "WARPWRIGHT_SWEEP_INTERVAL_S": "0.3",
            "WARPWRIGHT_LOG_FORMAT": "json",
            "WARPWRIGHT_TRACE_AHEAD": "false",  # nothing is traced here
        }

    def start(self, *kinds: str) -> None:
        for kind in kinds:
            self.workers[kind] = WorkerProcess(kind, self.environment, self.shop.folder / f"{kind}.log")

    def log(self, kind: str) -> str:
        return (self.shop.folder / f"{kind}.log").read_text(errors="replace")


@pytest.fixture
def floor(shop: Shop, stack: Stack) -> Iterator[Floor]:
    with ExitStack() as running:
        url = stack.redis_url if stack.has_broker else running.enter_context(valkey())
        made = Floor(shop, url)
        yield made
        for worker in made.workers.values():
            worker.process.terminate()
        for worker in made.workers.values():
            worker.stop()


def judge_pids(worker: WorkerProcess) -> list[int]:
    children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def ended(pid: int) -> bool:
    """Return True if a process has ended, reaped or not: its adopter reaps it in a while."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_work_that_waited_is_done_though_a_worker_is_killed_in_mid_job_and_workers_stop_in_time(floor: Floor) -> None:
    """A Job that waits before any worker comes needs no nudge; a killed worker's Job goes to the next worker."""
    shop = floor.shop
    shop.context()
    run = shop.start("speed=1.5 sleep=1.5", "speed=1.2")
    with write_session(shop.contexts[0].engine) as s:
        sweep(s)
    floor.start("control", "propose", "build", "cpu")
    until(lambda: any("judge speed=1.5" in line for line in shop.requests()), "the judging")
    judges = judge_pids(floor.workers["cpu"])
    assert judges
    floor.workers["cpu"].kill()
    until(lambda: all(map(ended, judges)), "the judge's end with its worker")
    (shop.folder / "hurry").touch()
    floor.start("cpu")
    until(lambda: shop.run(run.id).status.ended, "the run's end")
    assert shop.run(run.id).champion_id is not None
    assert [c.verdict for c in shop.candidates(run.id)] == [Verdict.PASSED] * 2
    asked = Counter(line for line in shop.requests() if line.startswith("judge "))
    assert asked["judge speed=1.5 sleep=1.5"] >= 2
    assert asked["judge speed=1.2"] == 1
    events = [json.loads(line).get("event") for line in floor.log("control").splitlines() if line.startswith("{")]
    assert "sweep.nudged" in events
    started = time.monotonic()
    for kind in ("control", "propose", "build", "cpu"):
        assert floor.workers.pop(kind).stop() == 0, floor.log(kind)
    assert time.monotonic() - started < 60
