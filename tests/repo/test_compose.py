"""docker-compose.yml: valid, without secrets, and its start commands exist and start."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


check = module(ROOT / "scripts" / "check_compose.py")
alive = module(ROOT / "docker" / "alive.py")


@pytest.fixture
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return loaded


def test_the_file_is_sound(compose: dict[str, Any]) -> None:
    assert list(check.complaints(compose)) == []


def test_the_service_knows_the_models_and_never_their_keys(compose: dict[str, Any]) -> None:
    api, propose = (compose["services"][name]["environment"] for name in ("api", "worker-propose"))
    assert api["WARPWRIGHT_MODELS"] == propose["WARPWRIGHT_MODELS"] == "${WARPWRIGHT_MODELS:-}"
    assert api["WARPWRIGHT_TRUSTED_PROXIES"] == "${WARPWRIGHT_TRUSTED_PROXIES:-}"
    assert "WARPWRIGHT_MODEL_API_KEY" not in api


CAGES = ("worker-build", "worker-cpu", "worker-gpu", "worker-gpu-build", "worker-propose")


def test_what_runs_cages_can_and_nothing_else_may(compose: dict[str, Any]) -> None:
    """The synthesiser traces references in a cage: its worker needs PyTorch and namespaces as the judge's do."""
    for name, service in compose["services"].items():
        lifted = "seccomp=unconfined" in service.get("security_opt", [])
        assert lifted == (name in CAGES), name
        if name in CAGES:
            text = (ROOT / service["build"]["dockerfile"]).read_text(encoding="utf-8")
            assert "bubblewrap" in text, name
            assert "[judge,stack]" in text, name


def plant(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(compose: dict[str, Any]) -> None:
        compose["services"]["api"][key] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (plant("comand", ["python"]), "'comand'"),
        (plant("environment", {"DB_PASSWORD": "hunter2"}), "DB_PASSWORD is baked in"),
        (plant("healthcheck", {}), "no healthcheck"),
        (plant("ports", ["8000:8000"]), "beyond loopback"),
        (plant("privileged", True), "privileged"),
        (plant("depends_on", {"nobody": {"condition": "service_healthy"}}), "'nobody'"),
        (plant("build", {"context": ".", "dockerfile": "docker/none.Dockerfile"}), "does not exist"),
        (plant("volumes", ["lost:/x"]), "'lost' is not declared"),
    ],
)
def test_a_planted_fault_is_found(
    compose: dict[str, Any], change: Callable[[dict[str, Any]], None], words: str
) -> None:
    change(compose)
    assert any(words in complaint for complaint in check.complaints(compose))


def test_every_dockerfile_starts_from_pinned_constraints() -> None:
    for path in (ROOT / "docker").glob("*.Dockerfile"):
        text = path.read_text(encoding="utf-8")
        assert "pip install -c constraints.txt" in text, path.name
        assert "USER warpwright" in text, path.name


def test_a_worker_is_found_by_its_command_line(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"python\0-m\0workers\0cpu\0")
    assert alive.worker_runs("cpu", tmp_path)
    assert not alive.worker_runs("gpu", tmp_path)
    assert not alive.broker_listens("redis://127.0.0.1:1/0")
