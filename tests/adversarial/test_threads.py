"""Candidates whose threads work on after a call, judged with two threads: another core is free for them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from evaluator.devices.cpu import CpuBackend
from evaluator.stages.judge import Judge
from tests.adversarial import suite

CORES = os.sched_getaffinity(0)  # before the suite leaves one to the judge
pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(600),
    pytest.mark.skipif(len(CORES) < 2, reason="two threads need two cores"),
]
LATE = ("cpp_thread_races_the_reader", "thread_writes_later", "leaves_after_late_work")


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[suite.Court]:
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    judge = Judge(CpuBackend(threads=2), protocol=suite.PROTOCOL)
    try:
        with suite.Court(judge, tmp_path_factory.mktemp("threads")) as one:
            yield one
    finally:
        judge.close()
        os.sched_setaffinity(0, own)


@pytest.mark.parametrize("name", LATE)
def test_a_thread_that_lives_on_past_a_call_is_caught(court: suite.Court, name: str) -> None:
    case = next(case for case in suite.cases("cheats") if case.name == name)
    found = court.try_case(case)
    if suite.TRUE_TIME in case.verdicts:
        found = court.true_time(case, found)
    assert found.environment is not None
    assert found.environment.threads == 2
    suite.check(case, found)
