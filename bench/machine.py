"""Describe the machine of a figure: hardware, versions, load."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluator.languages.base import version

PACKAGES = ("torch", "triton", "fastapi", "starlette", "uvicorn", "sqlalchemy", "psycopg", "celery", "redis")


def describe() -> dict[str, Any]:
    """Return the description as JSON, with GPUs and their driver.

    `load_average` above the number of processors means that other work ran too; a negative `niceness` that the figures
    were taken with priority over it.
    """
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": model or platform.machine(),
        "processors": os.cpu_count(),
        "memory_gib": round(int(memory) / 2**20, 1),
        "python": platform.python_version(),
        "gpus": _gpus(),
        # A machine that only judges lacks the service's.
        "packages": {name: found for name in PACKAGES if (found := version(name))},
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    }


def _gpus() -> list[str]:
    """Return name and driver of each visible GPU; nothing if there is none."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return found.stdout.splitlines() if found.returncode == 0 else []


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
