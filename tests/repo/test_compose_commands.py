"""Every start command of docker-compose.yml, started for real without Docker, against a private Valkey and SQLite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repo.test_compose import alive
from warpwright.api import Client
from warpwright.errors import Refused, WarpwrightError
from warpwright.stack import children
from warpwright.stack.children import Child
from warpwright.stack.valkey import Valkey, find_server, free_port

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))[
    "services"
]
# Others differ from it in the name of their queue; tests/e2e starts workers of every kind.
QUICK_WORKERS = ("worker-cpu",)
WORKERS = [
    pytest.param(name, marks=() if name in QUICK_WORKERS else pytest.mark.soak)
    for name in sorted(SERVICES)
    if name.startswith("worker-")
]
START_S = 60.0

pytestmark = pytest.mark.stack

CHOSEN = {"POSTGRES_PASSWORD": "a-password", "WARPWRIGHT_API_KEY": "a-key-of-sixteen-or-more"}
"""The lines that an operator writes into .env."""
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::([-?])([^}]*))?\}")


def environment_of(service: str) -> dict[str, str]:
    """Return the variables that compose would set, with CHOSEN for .env."""

    def value(match: re.Match[str]) -> str:
        name, how, text = match.groups()
        assert name in CHOSEN or how == "-", f"{name} has to be chosen, and .env does not"
        return CHOSEN.get(name, text)

    return {key: VARIABLE.sub(value, str(text)) for key, text in SERVICES[service]["environment"].items()}


def wait_until(condition: Callable[[], object], child: Child) -> bool:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and child.alive():
        if condition():
            return True
        time.sleep(0.05)
    return False


def command_of(service: str) -> list[str]:
    """Return the command that compose would run, with our interpreter for `python`."""
    command = [str(part) for part in SERVICES[service]["command"]]
    return [sys.executable, *command[1:]] if command[0] == "python" else command


@contextmanager
def started(name: str, command: list[str], folder: Path, env: dict[str, str], **options: Any) -> Iterator[Child]:
    child = children.start(name, command, log=folder / f"{name}.log", env={**os.environ, **env}, **options)
    try:
        yield child
    finally:
        children.stop([child], grace_s=10.0)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Stand-ins for the containers around a service: a private Valkey, SQLite and this checkout."""
    folder = tmp_path_factory.mktemp("compose")
    valkey = Valkey.choose()
    with started(
        "valkey", [str(find_server()), "-"], folder, {}, cwd=folder, stdin=valkey.configuration(folder)
    ) as child:
        assert wait_until(valkey.answers, child), child.log_tail()
        env = {
            "WARPWRIGHT_DATABASE_URL": f"sqlite:///{folder / 'test.db'}",
            "WARPWRIGHT_REDIS_URL": valkey.url,
            "WARPWRIGHT_DATA_DIR": str(folder),
            "WARPWRIGHT_LOCK_DIR": str(folder / "locks"),
            "PYTHONPATH": str(ROOT),
        }
        migrated = subprocess.run(
            [sys.executable, "-m", "db", "migrate"], env={**os.environ, **env}, cwd=ROOT, timeout=60, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert migrated.returncode == 0, migrated.stderr
        yield env


def test_the_api_answers_on_every_address_and_only_with_the_key(broker: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    env = {**environment_of("api"), **broker, "WARPWRIGHT_PORT": str(port)}
    assert env["WARPWRIGHT_HOST"] == "0.0.0.0"
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        with Client(url, timeout_s=60.0) as client:
            try:
                return bool(client.get_readiness())
            except WarpwrightError:
                return False

    with started("api", command_of("api"), tmp_path, env, cwd=ROOT) as child:
        assert wait_until(ready, child), child.log_tail()
        # The health check of the container, against the port that it would have there.
        test = SERVICES["api"]["healthcheck"]["test"]
        code = test[3].replace(":8000/", f":{port}/")
        assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
        with Client(url, api_key=CHOSEN["WARPWRIGHT_API_KEY"], timeout_s=60.0) as client:
            assert client.list_runs().items == ()
        with Client(url, api_key="another-key-of-sixteen", timeout_s=60.0) as client, pytest.raises(Refused) as refused:
            client.list_runs()
        assert refused.value.status == 401


def test_the_api_does_not_start_without_a_key(broker: dict[str, str]) -> None:
    env = {**environment_of("api"), **broker, "WARPWRIGHT_PORT": str(free_port()), "WARPWRIGHT_API_KEY": ""}
    done = subprocess.run(
        command_of("api"), env={**os.environ, **env}, cwd=ROOT, timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "WARPWRIGHT_API_KEY" in done.stderr


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_starts_and_its_health_check_sees_it(broker: dict[str, str], tmp_path: Path, name: str) -> None:
    queue = command_of(name)[3]
    with started(name, command_of(name), tmp_path, {**environment_of(name), **broker}, cwd=ROOT) as child:
        assert wait_until(lambda: "ready" in child.log_tail(), child), child.log_tail()
        assert SERVICES[name]["healthcheck"]["test"] == ["CMD", "python", "docker/alive.py", queue]
        assert alive.worker_runs(queue)
        health = subprocess.run(
            [sys.executable, "docker/alive.py", queue], env={**os.environ, **broker}, cwd=ROOT, timeout=60, check=False
        )
        assert health.returncode == 0
    assert not child.alive()


def test_redis_takes_its_command(tmp_path: Path) -> None:
    command = command_of("redis")
    assert command[0] == "redis-server"
    valkey = Valkey(free_port(), "unused")
    options = [*command[1:], "--port", str(valkey.port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    with started("redis", [str(find_server()), *options], tmp_path, {}, cwd=tmp_path) as child:
        assert wait_until(lambda: alive.broker_listens(f"redis://127.0.0.1:{valkey.port}"), child), child.log_tail()
