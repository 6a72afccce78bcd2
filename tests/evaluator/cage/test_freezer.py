"""What the judge reads of its children's processes, and that what it cannot read proves nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from evaluator.cage import freezer
from evaluator.errors import CageError


def test_what_cannot_be_read_is_no_sign_of_an_end() -> None:
    """No process may count as gone or stopped while the judge has no descriptor left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(CageError, match="cannot read /proc"):
            freezer.usage(os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert freezer.usage(os.getpid())[0] >= 0


def test_a_process_that_is_gone_is_read_as_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(60)
    assert freezer.run_and_queue_ns(ended.pid, ended.pid) == (0, 0)
    assert freezer.total_ran_ns(ended.pid) == 0
    assert not freezer.sees(os.getpid(), ended.pid)


def test_children_are_seen_with_their_run_time() -> None:
    work = "sum(range(10**6)); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it waits now, so the kernel knows how long it ran
        assert freezer.sees(os.getpid(), child.pid)
        assert freezer.total_ran_ns(os.getpid()) > 1_000_000
        child.communicate(b"\n", timeout=60)


def test_what_shares_a_core_with_the_one_that_stops_it_is_stopped() -> None:
    """In a session of its own, as a child is: a yield then gives it no core."""
    work = "import os\nif os.fork(): os.wait()\nos.setsid()\nprint(flush=True)\nwhile True: pass"
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE) as root:
            try:
                assert root.stdout is not None
                root.stdout.readline()
                for _ in range(20):
                    freezer.thaw(freezer.freeze(root.pid).pids)
            finally:
                for pid in [*freezer.descendants(root.pid), root.pid]:
                    os.kill(pid, signal.SIGKILL)
    finally:
        os.sched_setaffinity(0, cores)
