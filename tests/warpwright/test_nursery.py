"""Programs that a nursery forks: as if they had been started by themselves, and none outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.warpwright.test_children import wait_until
from warpwright import paths
from warpwright.errors import StackFailed
from warpwright.stack import children
from warpwright.stack.children import Child, Nursery
from warpwright.stack.supervisor import SHARED_MODULES

PROGRAM = "tests.support.nursery_program"
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(paths.checkout())}


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    """A nursery that has imported one module, and failed to import another."""
    modules = ["json.tool", "no.such.module"]
    one = Nursery(modules, log=tmp_path / "nursery.log", env=ENVIRONMENT, cwd=paths.checkout())
    yield one
    one.close(grace_s=10.0)


def start(nursery: Nursery, folder: Path, *arguments: str, **environment: str) -> Child:
    log = folder / "log"
    cpus = {min(os.sched_getaffinity(0))}
    return nursery.start("one", PROGRAM, arguments, log=log, env={**ENVIRONMENT, **environment}, cpus=cpus)


def told(child: Child) -> dict[str, Any]:
    """Return what the program printed, once it did."""
    assert wait_until(lambda: child.log_tail().endswith("}")), child.log_tail()
    found: dict[str, Any] = json.loads(child.log_tail().splitlines()[-1])
    return found


def test_a_program_gets_its_arguments_its_environment_and_a_group_of_its_own(nursery: Nursery, tmp_path: Path) -> None:
    child = start(nursery, tmp_path, "3", "more", ONLY="mine")
    assert child.process.wait(60.0) == 3
    assert not child.alive()
    seen = told(child)
    assert seen["arguments"] == ["3", "more"]
    assert seen["environment"] == {**ENVIRONMENT, "ONLY": "mine"}
    assert seen["session"] == child.process.pid


def test_programs_draw_different_numbers(nursery: Nursery, tmp_path: Path) -> None:
    draws = set()
    for _ in range(2):
        child = start(nursery, tmp_path, "0")
        child.process.wait(60.0)
        draws.add(told(child)["draw"])
    assert len(draws) == 2


def test_a_program_is_stopped_as_any_other_child(nursery: Nursery, tmp_path: Path) -> None:
    child = start(nursery, tmp_path, "stay")
    told(child)
    with pytest.raises(subprocess.TimeoutExpired):
        child.process.wait(0.0)
    children.stop([child], grace_s=10.0)
    assert child.process.returncode == -signal.SIGTERM


def test_what_the_stack_shares_starts_no_thread() -> None:
    """A fork would not have it."""
    code = "import importlib, sys, threading\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
    code += "sys.exit(threading.active_count() - 1)"
    subprocess.run(
        [sys.executable, "-c", code, *SHARED_MODULES], cwd=paths.checkout(), env=ENVIRONMENT, check=True, timeout=90
    )


def test_programs_die_with_their_nursery(nursery: Nursery, tmp_path: Path) -> None:
    child = start(nursery, tmp_path, "stay")
    told(child)
    nursery.close(grace_s=10.0)
    assert wait_until(lambda: not Path(f"/proc/{child.process.pid}").exists())


def test_a_dead_nursery_is_noticed(nursery: Nursery, tmp_path: Path) -> None:
    child = start(nursery, tmp_path, "stay")
    told(child)
    (parent,) = (line.split()[1] for line in Path(f"/proc/{child.process.pid}/status").read_text().splitlines()
                 if line.startswith("PPid:"))  # fmt: skip
    os.kill(int(parent), signal.SIGKILL)
    assert wait_until(lambda: not child.alive())
    assert not nursery.alive()
    with pytest.raises(StackFailed, match=r"nursery\.log"):
        start(nursery, tmp_path, "0")
