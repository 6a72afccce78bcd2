"""The embedded stack's supervisor, over small stand-ins for the service and the workers (real processes)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import textwrap
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warpwright.test_children import alive, wait_until
from warpwright import paths
from warpwright.cli.sessions import open_session
from warpwright.errors import BadUsage, Missing, StackFailed
from warpwright.stack import supervisor
from warpwright.stack.data_folder import DataFolder
from warpwright.stack.supervisor import Stack

SERVICE = """
import http.server, json, os

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        health = {"status": "ok", "checks": {}}
        body = json.dumps({**health, "pid": os.getpid(), "redis": os.environ["WARPWRIGHT_REDIS_URL"]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["WARPWRIGHT_PORT"])), Handler)
print(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}"}), flush=True)
server.serve_forever()
"""
WORKER = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["WARPWRIGHT_DATA_DIR"])
(folder / f"{sys.argv[1]}.{os.getpid()}").touch()
time.sleep(0 if sys.argv[1] == "broken" else 60)
sys.exit("it broke")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataFolder]:
    checkout = tmp_path / "checkout"
    for room, code in (("service", SERVICE), ("workers", WORKER)):
        (checkout / room).mkdir(parents=True)
        (checkout / room / "__init__.py").touch()
        (checkout / room / "__main__.py").write_text(textwrap.dedent(code), encoding="utf-8")
    monkeypatch.setattr(paths, "checkout", lambda: checkout)
    data = DataFolder(tmp_path / "data")
    with data.locked():
        yield data


def workers_of(folder: DataFolder, name: str) -> list[int]:
    return sorted(int(path.suffix[1:]) for path in folder.path.glob(f"{name}.[0-9]*"))


def ask(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=60) as reply:
        value: dict[str, object] = json.load(reply)
        return value


def test_it_comes_up_revives_what_dies_and_leaves_nothing(folder: DataFolder) -> None:
    with Stack(folder, workers=["control"], stays=True) as running:
        running_now = folder.running()
        assert running_now is not None
        assert running_now.url == running.url
        first = ask(running.url)
        assert str(first["redis"]).startswith("redis://:")
        assert wait_until(lambda: len(workers_of(folder, "control")) == 1)
        worker = workers_of(folder, "control")[0]
        os.kill(worker, signal.SIGKILL)
        os.kill(int(str(first["pid"])), signal.SIGKILL)
        assert wait_until(lambda: len(workers_of(folder, "control")) == 2), "the worker was not started again"
        # The API comes back at the same address.
        assert wait_until(lambda: _pid(running.url) not in (None, first["pid"]))
        pids = [*workers_of(folder, "control"), int(str(ask(running.url)["pid"]))]
        running.check()
    assert not any(alive(pid) for pid in pids)
    assert not (folder.path / "run").exists()


def _pid(url: str) -> object:
    try:
        return ask(url)["pid"]
    except OSError:
        return None


def test_a_part_that_keeps_dying_brings_it_down_with_its_words(folder: DataFolder) -> None:
    with Stack(folder, workers=["broken"]) as running:
        assert wait_until(lambda: _failure(running) is not None, 30)
        failure = str(_failure(running))
    assert "worker-broken keeps dying" in failure
    assert "it broke" in failure


def _failure(running: Stack) -> StackFailed | None:
    try:
        running.check()
    except StackFailed as error:
        return error
    return None


def test_an_api_that_does_not_start_is_reported_with_its_log(folder: DataFolder) -> None:
    (paths.checkout() / "service" / "__main__.py").write_text("raise SystemExit('no such database')")
    with pytest.raises(StackFailed, match="no such database"), Stack(folder, workers=[]):
        pass


def test_without_the_rooms_it_says_what_to_install(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "installed", lambda: False)
    with pytest.raises(Missing, match="pip install"):
        Stack(folder, workers=[])


@pytest.mark.parametrize(("cpus", "builders"), [(1, 1), (2, 1), (7, 1), (15, 3), (64, 4)])
def test_compilers_get_a_quarter_of_the_processors(monkeypatch: pytest.MonkeyPatch, cpus: int, builders: int) -> None:
    monkeypatch.setattr(supervisor, "shared_cpus", lambda: set(range(cpus)))
    assert supervisor.workers_for("gpu-build") == supervisor.workers_for("build") == builders
    assert supervisor.workers_for("gpu") == supervisor.workers_for("control") == 1


@pytest.mark.parametrize(
    ("cpus", "workers", "started"),
    [
        (1, ("control", "build", "cpu"), [["control"], ["cpu", "--builds"]]),
        (2, ("control", "build", "cpu"), [["control"], ["build"], ["cpu"]]),
        (1, ("gpu", "gpu-build"), [["gpu"], ["gpu-build"]]),
        (1, ("build",), [["build"]]),
    ],
)
def test_the_judge_also_builds_where_another_one_would_take_its_core(
    monkeypatch: pytest.MonkeyPatch, cpus: int, workers: tuple[str, ...], started: list[list[str]]
) -> None:
    monkeypatch.setattr(supervisor, "shared_cpus", lambda: set(range(cpus)))
    assert supervisor.arguments_of(workers) == started


def test_a_second_command_joins_the_stack_and_learns_of_its_end(folder: DataFolder) -> None:
    with (
        Stack(folder, workers=["control"]) as running,
        open_session(None, folder.path, workers=["control"]) as session,
    ):
        assert session.client.url == running.url
        session.check()
        (folder.path / "stack.json").unlink()
        with pytest.raises(StackFailed, match=r"stopped by its owner.*warpwright serve"):
            session.check()


def test_other_cpu_threads_than_a_service_judges_with_are_refused(tmp_path: Path) -> None:
    serving = DataFolder(tmp_path)
    with serving.locked():
        serving.publish("http://127.0.0.1:1234", stays=True)
        with (
            pytest.raises(BadUsage, match=r"judges with 1 CPU threads.*WARPWRIGHT_CPU_THREADS=2"),
            open_session(None, tmp_path, workers=["cpu"], threads="2"),
        ):
            raise AssertionError("joined")


def test_an_owner_with_a_bound_does_not_wait_for_one_that_stays(folder: DataFolder) -> None:
    folder.release()
    with contextlib.ExitStack() as joiner:
        with open_session(None, folder.path, workers=["control"], linger_s=0.0) as owner:
            joined = joiner.enter_context(open_session(None, folder.path, workers=["control"]))
            assert joined.client.url == owner.client.url
            joined.check()
        with pytest.raises(StackFailed, match="stopped by its owner"):
            joined.check()


def test_a_command_joins_a_stack_that_is_only_starting(folder: DataFolder) -> None:
    found: list[str] = []

    def join() -> None:
        with open_session(None, folder.path, workers=["control"]) as session:
            found.append(session.client.url)

    other = threading.Thread(target=join)
    other.start()  # the folder is locked, and nothing runs on it yet
    with Stack(folder, workers=["control"]) as running:
        assert wait_until(lambda: bool(found))
        assert found == [running.url]
    other.join(60)
    assert not other.is_alive()
