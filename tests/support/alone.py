"""Run a test that compares real times alone when it is tried again: the other workers wait until it has ended.

Each test holds a shared lock on a file of the whole run. A test that is tried again holds it exclusively. It keeps
the door shut from its first attempt to get in, or the others would go on passing the lock among themselves.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

FOLDER = "lock_folder"  # in what a worker is given


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold the run's lock: shared, or with `alone` exclusively."""
    door, room = folder / "door", folder / "room"
    with contextlib.ExitStack() as held:
        with contextlib.ExitStack() as entering:
            entering.enter_context(_locked(door, fcntl.LOCK_EX))
            held.enter_context(_locked(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
            if alone:
                held.enter_context(entering.pop_all())
        yield


class Locks:
    """A plugin for the process that starts the workers: it has a folder for their locks."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warpwright-tests-")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput[FOLDER] = self._folder.name

    def pytest_unconfigure(self) -> None:
        self._folder.cleanup()


class Turns:
    """A plugin for each worker, whose locks lie in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = contextlib.ExitStack()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        repeated = getattr(item, "execution_count", 1) > 1
        self._held.enter_context(turn(self._folder, alone=repeated))
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._held.close()
