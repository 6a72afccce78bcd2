"""Run a test's Python code in a child, with the rights of a Candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from evaluator.cage.policy import CagePolicy, Limits
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.process import ChildProcess
from evaluator.stages.judge import Judge

LIGHT = CagePolicy(preload=("evaluator.child.protocol.framing",))
"""For pools of a test's own: nothing of ours imports torch in them, which takes seconds."""
PROBE = b"""
import os

def python(request, fds):
    space = {"__name__": "candidate", "result": {}, "fds": fds}
    exec(compile(request["code"], "/job/candidate.py", "exec"), space)
    return space["result"]

def ping(request, fds):
    return {"pid": os.getpid()}

OPS = {"python": python, "ping": ping}
"""


@dataclass(frozen=True)
class Probe:
    process: ChildProcess

    def run(self, code: str, *, timeout_s: float = 20.0) -> dict[str, Any]:
        """Execute `code` inside, and return the value that it assigns to `result`."""
        return self.process.request("python", code=code, timeout_s=timeout_s)


StartProbe = Callable[..., AbstractContextManager[Probe]]


@pytest.fixture
def pool(judge: Judge) -> ChildPool:
    """Return the pool that Candidates come from."""
    return judge.session.pools.plain()


@pytest.fixture
def probe(pool: ChildPool) -> StartProbe:
    @contextmanager
    def start(files: Mapping[str, bytes] | None = None, *, limits: Limits | None = None) -> Iterator[Probe]:
        files = {"probe.py": PROBE, **(files or {})}
        with pool.start(name="probe", files=files, limits=limits, operations="probe") as child:
            yield Probe(child)

    return start
