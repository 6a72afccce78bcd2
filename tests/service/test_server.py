"""The real process: `python -m service` under uvicorn, with real connections."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine

from db.engine import make_engine, write_session
from db.transitions.access.keys import create_key, revoke_key
from evaluator.problem import read_problem
from runtime.settings import Settings
from service.__main__ import main
from service.errors import StartupError
from service.exposure import check_exposure, is_loopback
from service.server import listen
from tests.db.world import World, from_list
from tests.service.conftest import PROBLEM, SOURCES
from tests.support.stacks import NOBODY, Stack

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.stack


@dataclass
class Running:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    url: str
    engine: Engine


def variables(folder: Path) -> dict[str, str]:
    """Settings of a service: a database and a port of its own, and no broker."""
    return {
        "WARPWRIGHT_DATABASE_URL": f"sqlite:///{folder / 'service.db'}",
        "WARPWRIGHT_REDIS_URL": NOBODY,
        "WARPWRIGHT_DATA_DIR": str(folder),
        "WARPWRIGHT_PORT": "0",
    }


def start(folder: Path, **environment: str) -> subprocess.Popen[str]:
    with (folder / "service.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "service"],
            cwd=ROOT,
            env={**os.environ, **variables(folder), **environment},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


@pytest.fixture
def database_url(stack: Stack, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own."""
    with stack.database(tmp_path) as url:
        yield url


@pytest.fixture
def running(stack: Stack, database_url: str, tmp_path: Path) -> Iterator[Running]:
    process = start(tmp_path, WARPWRIGHT_DATABASE_URL=database_url, WARPWRIGHT_REDIS_URL=stack.redis_url)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (tmp_path / "service.log").read_text()
    engine = make_engine(database_url)
    try:
        yield Running(process, json.loads(line)["url"], engine)
    finally:
        engine.dispose()
        process.kill()
        process.wait(60)
        process.stdout.close()


def test_events_stream_live_and_resume_until_the_run_has_ended(running: Running) -> None:
    world = World(running.engine, propose=from_list(*SOURCES), problem=read_problem(PROBLEM, "softmax"))
    run = world.start()
    path = f"{running.url}/api/v1/runs/{run.id}/events"
    headers = {"accept": "text/event-stream"}
    seqs: list[int] = []
    with httpx2.Client(timeout=60, trust_env=False) as client:
        with client.stream("GET", path, headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = (event for event in httpx2.EventSource(response) if event.data)
            first = next(events)
            assert (first.id, first.event) == ("1", "run.created")
            assert json.loads(first.data)["data"]["problem_id"] == run.problem_id
            world.drain()  # everything happens while the stream is open
            for event in events:
                seqs.append(int(event.id))
                if event.event == "champion.promoted":
                    break
        resumed = {**headers, "last-event-id": str(seqs[-1])}
        with client.stream("GET", path, headers=resumed) as response:
            rest = [(int(event.id), event.event) for event in httpx2.EventSource(response) if event.data]
        assert rest[-1][1] == "run.ended"  # and the stream ended by itself
        seqs += [seq for seq, _ in rest]
        assert seqs == list(range(2, world.run(run.id).last_seq + 1))
        done = client.get(path, headers={**headers, "last-event-id": str(seqs[-1])})
        assert done.status_code == 204
        assert client.get(f"{running.url}/runs/{run.id}").status_code == 200
    maps = Path(f"/proc/{running.process.pid}/maps").read_text()
    assert "libtorch" not in maps  # whatever it was asked
    assert "python" in maps  # it is the right file that was read


def make_key(database_url: str, *options: str) -> tuple[str, str]:
    """A key made as an operator makes one: its secret and its id."""
    done = subprocess.run(
        [sys.executable, "-m", "service", "keys", "create", *options],
        cwd=ROOT, env={**os.environ, "WARPWRIGHT_DATABASE_URL": database_url},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.strip(), done.stderr.split()[0]


def test_an_operator_s_key_opens_a_stream_that_ends_when_it_is_revoked(database_url: str, tmp_path: Path) -> None:
    engine = make_engine(database_url)
    with write_session(engine) as s:
        made, secret = create_key(s, "default", name="test", scope="operator", created_by="test")
    # No key in the settings, and a name that is not loopback's: the operator's key in the database is enough to start.
    process = start(tmp_path, WARPWRIGHT_DATABASE_URL=database_url, WARPWRIGHT_ALLOWED_HOSTS="kernels.example")
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        run = World(engine, problem=read_problem(PROBLEM, "softmax")).start()
        path = f"{url}/api/v1/runs/{run.id}/events"
        headers = {"accept": "text/event-stream", "authorization": f"Bearer {secret}"}
        with httpx2.Client(timeout=60, trust_env=False) as client:
            assert client.get(path).status_code == 401
            with client.stream("GET", path, headers=headers) as response:
                chunks = response.iter_bytes()
                assert next(chunks)
                with write_session(engine) as s:
                    revoke_key(s, made.id)
                began = time.monotonic()
                assert b"run.ended" not in b"".join(chunks)  # it ends, whole, within seconds
                assert time.monotonic() - began < 60
            assert client.get(path, headers=headers).status_code == 401
    finally:
        engine.dispose()
        process.kill()
        process.wait(60)
        process.stdout.close()


def test_keys_are_listed_and_revoked_on_the_command_line(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of them in a process of its own, as all are; for the others that would only be its start, many times."""
    monkeypatch.setenv("WARPWRIGHT_DATABASE_URL", database_url)

    def keys(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        try:
            status = main(["keys", *arguments])
        except SystemExit as end:  # argparse
            status = int(end.code or 0)
        return status, capsys.readouterr().out

    secret, key_id = make_key(database_url, "--days", "3")
    status, listed = keys("list")
    assert status == 0
    assert secret not in listed
    row = json.loads(listed)
    assert (row["id"], row["scope"], row["revoked_at"]) == (key_id, "submit", None)
    assert keys("revoke", key_id)[0] == 0
    assert json.loads(keys("list", "--project", "default")[1])["revoked_at"]
    for arguments in (("revoke", "key_none"), ("create", "--project", "none"), ("create", "--days", "0")):
        assert keys(*arguments) == (2, "")


def test_sigterm_ends_open_streams_and_the_process(running: Running) -> None:
    run = World(running.engine, problem=read_problem(PROBLEM, "softmax")).start()
    with (
        httpx2.Client(timeout=60, trust_env=False) as client,
        client.stream(
            "GET", f"{running.url}/api/v1/runs/{run.id}/events", headers={"accept": "text/event-stream"}
        ) as r,
    ):
        chunks = r.iter_bytes()
        assert next(chunks)
        running.process.send_signal(signal.SIGTERM)
        assert b"run.ended" not in b"".join(chunks)  # it ends, whole, and is not the run's end
    assert running.process.wait(60) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"WARPWRIGHT_ALLOWED_HOSTS": "kernels.example"}, "service keys create"),
        ({"WARPWRIGHT_TRUSTED_PROXIES": "10.0.0.300"}, "WARPWRIGHT_TRUSTED_PROXIES"),
        ({"WARPWRIGHT_HOST": "0.0.0.0", "WARPWRIGHT_API_KEY": "short"}, "too short"),
        ({"WARPWRIGHT_PORT": "70000"}, "WARPWRIGHT_PORT"),
        ({"WARPWRIGHT_DATABASE_URL": "postgres://u:word@h/n"}, "the database's URL cannot be used"),
        ({"WARPWRIGHT_API_KEY": "", "WARPWRIGHT_HOST": "0.0.0.0"}, "refusing to serve 0.0.0.0 without a key"),
        ({"WARPWRIGHT_HOST": "192.0.2.1", "WARPWRIGHT_API_KEY": "k" * 20}, "cannot listen on 192.0.2.1"),
    ],
)
def test_a_dangerous_or_wrong_configuration_is_refused(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: dict[str, str],
    complaint: str,
) -> None:
    for name, value in (variables(tmp_path) | {"WARPWRIGHT_DATABASE_URL": database_url} | environment).items():
        monkeypatch.setenv(name, value)
    assert main([]) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert complaint in said


def test_a_service_without_a_key_names_the_database_that_one_goes_into() -> None:
    named = {"sqlite:////srv/x.db": "WARPWRIGHT_DATABASE_URL=sqlite:////srv/x.db python -m service keys create",
             "postgresql+psycopg://u:word@h/n": "create one (python -m service keys create"}  # fmt: skip
    for url, words in named.items():
        with pytest.raises(StartupError) as refused:
            check_exposure(Settings(host="0.0.0.0", database_url=url))
        assert words in str(refused.value)
        assert "word@" not in str(refused.value)


def test_a_database_that_cannot_be_opened_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for url in (f"sqlite:///{tmp_path}/none/x.db", "postgresql+psycopg://u:word@127.0.0.1:1/n"):
        monkeypatch.setenv("WARPWRIGHT_DATABASE_URL", url)
        for arguments in ([], ["keys", "list"]):
            assert main(arguments) == 3
            (line,) = capsys.readouterr().err.splitlines()
            assert "cannot be opened: " in line
            assert "word" not in line


def test_the_first_key_is_made_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARPWRIGHT_DATABASE_URL", raising=False)
    assert main(["keys", "create", "--scope", "operator", "--name", "me"]) == 0
    assert capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["keys", "create", "--days", "abc"])
    assert "choose between 1 and 3650 days" in capsys.readouterr().err


def test_a_refusal_is_the_process_s_exit_status(tmp_path: Path) -> None:
    process = start(tmp_path, WARPWRIGHT_HOST="0.0.0.0")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "WARPWRIGHT_API_KEY" in (tmp_path / "service.log").read_text()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_loopback_is_recognised(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_listening_socket_hands_out_connections_without_nagle() -> None:
    """asyncio does that for sockets that say that they are TCP; otherwise answers in two packets take 40 ms more."""

    async def option() -> int:
        found = asyncio.get_running_loop().create_future()

        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen("127.0.0.1", 0) as sock:
            async with await asyncio.start_server(connected, sock=sock):
                _, writer = await asyncio.open_connection(*sock.getsockname())
                try:
                    return await asyncio.wait_for(found, 10)
                finally:
                    writer.close()

    assert asyncio.run(option()) == 1


def test_full_collections_leave_the_application_alone() -> None:
    code = "import gc, sys\nfrom service.server import freeze_heap\nfrom service.app import create_app\n"
    code += "freeze_heap()\nassert gc.get_freeze_count() > 50_000\nassert len(gc.get_objects()) < 5_000\n"
    code += "assert 'mcp' not in sys.modules\n"  # a third of the start: the first request of an agent imports it
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
