"""The record of a test has the processor seconds of every child, however it ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import cpu

SPENT_S = 0.2
# A child of a process that ignores its end is waited for by nobody, as in a namespace that ends.
UNHEEDED = f"""
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = os.fork()
if not child:
    while sum(os.times()[:2]) < {SPENT_S}:
        pass
    os._exit(0)
try:
    os.waitpid(child, 0)
except ChildProcessError:
    pass
"""


def test_a_child_that_nobody_waits_for_counts() -> None:
    used_s = cpu.open_clock()
    if used_s is cpu.seen_s:
        pytest.skip("the kernel lets this user open no clock of processes (perf_event_paranoid)")
    before_s = used_s()
    subprocess.run([sys.executable, "-S", "-c", UNHEEDED], check=True, timeout=60)
    assert used_s() - before_s >= SPENT_S


def test_without_that_clock_processes_are_added_up() -> None:
    before_s = cpu.seen_s()
    subprocess.run([sys.executable, "-S", "-c", UNHEEDED], check=True, timeout=60)
    assert 0.0 <= cpu.seen_s() - before_s < before_s + SPENT_S
