"""The command line of workers, and waiting for the database."""

from __future__ import annotations

import shlex
import sys
import threading
from pathlib import Path

import pytest

from db.engine import make_engine, migrate
from evaluator.types import DeviceKind
from runtime.settings import settings
from tests.workers.conftest import Shop
from workers import __main__ as command
from workers.errors import JudgeFault, StartFailed
from workers.sweeper import sweep_once, sweep_until


def test_it_waits_for_the_schema_and_says_what_is_missing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with pytest.raises(StartFailed, match="database is not ready"):
        command.await_schema(url, wait_s=0.0)
    engine = make_engine(url)
    migrate(engine)
    engine.dispose()
    command.await_schema(url, wait_s=0.0)


def test_wrong_settings_are_exit_status_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WARPWRIGHT_LEASE_S", "soon")
    settings.cache_clear()
    try:
        assert command.main(["cpu"]) == 2
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert "WARPWRIGHT_LEASE_S" in capsys.readouterr().err


def test_every_kind_of_worker_has_a_queue_and_unknown_ones_are_refused() -> None:
    assert set(command.QUEUE_OF.values()) == {"control", "propose", "build", "build.cuda", "cpu", "gpu.cuda"}
    with pytest.raises(SystemExit):
        command.main(["tpu"])


def test_the_sweeper_nudges_what_nobody_claimed_and_outlives_errors(shop: Shop) -> None:
    context = shop.context(sweep_interval_s=0.01)
    shop.start("speed=1.5")
    nudged: list[str] = []
    with context.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE jobs SET nudged_at = '2020-01-01 00:00:00.000000'")
    context.nudge = nudged.extend  # type: ignore[method-assign]
    sweep_once(context)
    assert nudged == ["cpu"]

    stop = threading.Event()
    calls = 0

    def broken(queues: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            stop.set()
        raise ZeroDivisionError

    context.nudge = broken  # type: ignore[method-assign]
    sweeper = threading.Thread(target=sweep_until, args=(context, stop), daemon=True)
    sweeper.start()
    for _ in range(100):
        if stop.wait(0.02):
            break
        with context.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE jobs SET nudged_at = '2020-01-01 00:00:00.000000'")
    sweeper.join(60)
    assert calls == 3


@pytest.mark.parametrize(("kind", "starts"), [("build", True), ("cpu", True), ("propose", False)])
def test_a_judge_starts_before_the_database_is_awaited_and_ends_if_none_comes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, starts: bool
) -> None:
    context = shop.context()
    seen: list[int | None] = []

    def no_database(url: str) -> None:
        seen.append(context.judge(DeviceKind.CPU).pid)
        raise StartFailed("the database is not ready: gone")

    monkeypatch.setattr("workers.app.context", lambda: context)
    monkeypatch.setattr(command, "await_schema", no_database)
    assert command.main([kind]) == 1
    assert "gone" in capsys.readouterr().err
    assert [pid is not None for pid in seen] == [starts]
    assert context.judge(DeviceKind.CPU).pid is None


def test_a_judge_that_cannot_be_started_ahead_is_reported_by_its_first_request(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_: object, **__: object) -> None:
        raise OSError("too many processes")

    context = shop.context()
    with monkeypatch.context() as patched:
        patched.setattr("workers.judge_process.subprocess.Popen", no_process)
        context.begin("build")
        with pytest.raises(JudgeFault, match="too many processes"):
            context.judge(DeviceKind.CPU).request("ping", deadline_s=5.0)


@pytest.mark.parametrize(
    ("arguments", "queues"),
    [(["cpu", "--builds"], ("cpu", "build")), (["cpu"], ("cpu",)), (["control", "--builds"], ("control",))],
)
def test_the_worker_of_a_cpu_may_build_too(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, arguments: list[str], queues: tuple[str, ...]
) -> None:
    context = shop.context()

    def no_database(url: str) -> None:
        raise StartFailed("the database is not ready: gone")

    monkeypatch.setattr("workers.app.context", lambda: context)
    monkeypatch.setattr(command, "await_schema", no_database)
    assert command.main(arguments) == 1
    assert context.queues_with(queues[-1]) == queues


@pytest.mark.parametrize(("queue", "flags"), [("build", ["--builds"]), ("cpu", [])])
def test_the_judge_of_a_build_worker_is_told_that_it_only_builds(shop: Shop, queue: str, flags: list[str]) -> None:
    echo = (
        "import json, sys; q = json.loads(input()); print(json.dumps(dict(id=q['id'], ok=True, result=sys.argv[1:])))"
    )
    context = shop.context(judge_command=shlex.join([sys.executable, "-c", echo]))
    context.begin(queue)
    assert context.judge(DeviceKind.CPU).request("ping", deadline_s=30.0) == ["--device", "cpu", *flags]
