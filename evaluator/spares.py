"""Children that are started before anybody needs them, since a GPU's driver takes a quarter of a second for one.

They are made beside builds and checks, never while anything is timed, and know nothing yet: source and built files come
when one is taken.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from evaluator.errors import CageError, ChildFault, LockTimeout
from evaluator.pool import ChildPool, check_files, packed
from evaluator.process import ChildProcess

_FILES_S = 20.0


class Spares:
    """Up to `wanted` children of a pool, each made ready by `set_up` (which may raise ChildFault). May be used from
    several threads. A machine on which children cannot be started ahead has none."""

    def __init__(self, pool: Callable[[], ChildPool], set_up: Callable[[ChildProcess], None], wanted: int) -> None:
        self._pool, self._set_up, self._wanted = pool, set_up, wanted
        self._lock, self._filling = threading.Lock(), threading.Lock()
        self._children: list[ChildProcess] = []
        self._closed = False

    def take(self, name: str, files: Mapping[str, bytes]) -> ChildProcess | None:
        """A child with these files in its job folder, or None where none is ready."""
        checked = check_files(files)
        while True:
            with self._lock:
                child = self._children.pop() if self._children else None
            if child is None:
                return None
            child.name = name
            try:
                _provide(child, checked)
            except (CageError, ChildFault):
                child.close()  # it died while it waited: somebody else's doing, so the next one is tried
            else:
                return child

    @property
    def full(self) -> bool:
        return len(self._children) >= self._wanted

    def fill(
        self,
        enough: Callable[[], bool] = lambda: False,
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Start what is missing, one by one, until `enough` says so; returns when they are ready. The device is `held`
        while one is started. Whatever fails here fails again where it is told."""
        with self._filling:
            while not (self._closed or self.full or enough()):
                try:
                    with held():
                        child = self._started()
                except (CageError, ChildFault, LockTimeout):
                    return
                with self._lock:
                    self._children.append(child)

    def _started(self) -> ChildProcess:
        """A child that is ready. Raises CageError, ChildFault."""
        child = self._pool().start_empty(name="spare")
        try:
            self._set_up(child)
        except BaseException:
            child.close()
            raise
        return child

    def empty(self) -> None:
        """End those that wait."""
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.close()

    def close(self) -> None:
        """End them, and start no more."""
        self._closed = True
        with self._filling:
            self.empty()


def _provide(child: ChildProcess, files: Mapping[str, bytes]) -> None:
    """Hand the files of a job to a child that was started without. Raises ChildFault."""
    sizes, payload = packed(files)
    try:
        child.request("files", timeout_s=_FILES_S, fds=[payload], files=sizes)
    finally:
        os.close(payload)
