"""One embedded stack per data folder: who holds the folder, and where their service is."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from warpwright.errors import BadUsage

PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class Instance:
    """A running stack: the process that owns it, the address of its service, and whether it stays ("serve")."""

    pid: int
    url: str
    stays: bool


class DataFolder:
    """A data folder and its lock. The lock goes with the process that holds it, however that ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None
        self._info = path / "stack.json"
        try:
            path.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
            (path / "logs").mkdir(exist_ok=True)
        except OSError as error:
            raise BadUsage(
                f"the data folder {path} cannot be used ({error.strerror}); name another with --data"
            ) from error

    def acquire(self, *, wait: bool = False) -> bool:
        """Take the folder for this process; False where another process holds it (and `wait` is not asked for)."""
        lock = (self.path / "stack.lock").open("a", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            lock.close()
            return False
        self._lock = lock
        with contextlib.suppress(FileNotFoundError):
            self._info.unlink()  # of a holder that was killed
        return True

    def publish(self, url: str, *, stays: bool) -> None:
        """Tell others where the service of this folder is."""
        temporary = self._info.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(Instance(os.getpid(), url, stays))), encoding="utf-8")
        temporary.replace(self._info)

    def running(self) -> Instance | None:
        """What another process has published, or None."""
        try:
            return Instance(**json.loads(self._info.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def release(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                self._info.unlink()
            self._lock.close()
            self._lock = None

    @contextlib.contextmanager
    def held(self, *, wait: bool = False) -> Iterator[bool]:
        """`with folder.held() as mine:` takes the folder, and lets it go at the end where it was taken."""
        mine = self.acquire(wait=wait)
        try:
            yield mine
        finally:
            if mine:
                self.release()
