"""Run the real service as a process of its own, for benchmarks: `python -m service` on a free loopback port."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service that is ready for requests."""

    url: str
    pid: int

    @property
    def rss_bytes(self) -> int:
        """Return the resident memory of the process."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    @property
    def cpu_s(self) -> float:
        """Return the process's processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(database_url: str, folder: Path, **environment: str) -> Iterator[Running]:
    """Start the service, and end it with the block; its log goes to `folder`/service.log."""
    variables = {
        "WARPWRIGHT_DATABASE_URL": database_url,
        "WARPWRIGHT_DATA_DIR": str(folder),
        "WARPWRIGHT_PORT": "0",
        "WARPWRIGHT_LOG_FORMAT": "json",
        **environment,
    }
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "service"],
            cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError((folder / "service.log").read_text()[-4000:])
        yield Running(url=json.loads(line)["url"], pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
